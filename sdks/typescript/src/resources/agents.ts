/** Agents: find them and see what they can do. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { RequestOptions } from '../options.ts';
import { Numbers, type Pages } from '../pages.ts';
import type { Filters } from '../request.ts';
import { Resource } from '../resource.ts';

export class Agents extends Resource {
  /** The agents of the catalog. `tier: 2` gives the ranks 1 and 2. */
  list(
    query: Filters<types.ListAgentsData> = {},
    options?: RequestOptions,
  ): Pages<types.Agent, types.AgentsResponse> {
    return this.pages(
      operations.listAgents,
      (page) => page.agents,
      () => new Numbers(query),
      {
        options,
      },
    );
  }

  async get(name: string, options?: RequestOptions): Promise<types.AgentDetails> {
    return (await this.call(operations.getAgent, { path: { name } }, options)).agent;
  }

  /** The agent with this name or alias, or the best one for the work that `q` describes. */
  resolve(
    query: Filters<types.ResolveAgentData>,
    options?: RequestOptions,
  ): Promise<types.ResolvedResponse> {
    return this.call(operations.resolveAgent, { query }, options);
  }

  async departments(options?: RequestOptions): Promise<types.Department[]> {
    return (await this.call(operations.listDepartments, {}, options)).departments;
  }

  /** All agents by department. */
  async catalog(options?: RequestOptions): Promise<types.CatalogSection[]> {
    return (await this.call(operations.getCatalog, {}, options)).catalog;
  }

  /** The versions of an agent, newest first. */
  versions(
    name: string,
    query: Filters<types.ListAgentVersionsData> = {},
    options?: RequestOptions,
  ): Pages<types.Version, types.VersionsResponse> {
    return this.offsetList(
      operations.listAgentVersions,
      (page) => page.versions,
      (version) => version.version,
      query,
      { path: { name }, options },
    );
  }

  /** How the account's tasks of this agent went. */
  async statistics(name: string, options?: RequestOptions): Promise<types.AgentStatistics> {
    return (await this.call(operations.agentStatistics, { path: { name } }, options)).statistics;
  }
}
