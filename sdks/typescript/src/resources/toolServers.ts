/** Tool servers (MCP): connect them and call their tools. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { type Filters, idOf } from '../request.ts';
import { Resource } from '../resource.ts';

/** A tool server, or its ID. */
export type ServerRef = string | { id: string };

export class ToolServers extends Resource {
  /** Connects a server and reads its tools. Nothing is stored if that fails. */
  connect(
    body: types.ConnectServer,
    options?: KeyedRequestOptions,
  ): Promise<types.ServerToolsResponse> {
    return this.call(operations.connectServer, { body }, options);
  }

  list(options?: RequestOptions): Pages<types.ToolServer, types.ServersResponse> {
    return this.wholeList(operations.listServers, (page) => page.servers, { options });
  }

  async get(server: ServerRef, options?: RequestOptions): Promise<types.ToolServer> {
    return (await this.call(operations.getServer, { path: { id: idOf(server) } }, options)).server;
  }

  /** Changes the fields that are given, and connects again. */
  update(
    server: ServerRef,
    changes: types.UpdateServer,
    options?: RequestOptions,
  ): Promise<types.ServerToolsResponse> {
    const parts = { path: { id: idOf(server) }, body: changes };
    return this.call(operations.updateServer, parts, options);
  }

  async disconnect(server: ServerRef, options?: RequestOptions): Promise<void> {
    await this.call(operations.disconnectServer, { path: { id: idOf(server) } }, options);
  }

  /** Whether the server answers now. A server that is down is no error here. */
  ping(server: ServerRef, options?: RequestOptions): Promise<types.PingResponse> {
    return this.call(operations.pingServer, { path: { id: idOf(server) } }, options);
  }

  /** The past checks of the server, newest first. */
  checks(
    server: ServerRef,
    query: Filters<types.ListChecksData> = {},
    options?: RequestOptions,
  ): Pages<types.PastCheck, types.ChecksResponse> {
    return this.offsetList(
      operations.listChecks,
      (page) => page.checks,
      (check) => check.checkedAt,
      query,
      { path: { id: idOf(server) }, options },
    );
  }

  tools(server: ServerRef, options?: RequestOptions): Pages<types.Tool, types.ToolsResponse> {
    return this.wholeList(operations.listTools, (page) => page.tools, {
      path: { id: idOf(server) },
      options,
    });
  }

  /** Calls a tool once. A call whose outcome is unknown is never repeated. */
  invoke(
    server: ServerRef,
    body: types.InvokeTool,
    options?: KeyedRequestOptions,
  ): Promise<types.InvokedResponse> {
    return this.call(operations.invokeTool, { path: { id: idOf(server) }, body }, options);
  }

  /** Accepts the definitions of tools, as they were shown. */
  accept(
    server: ServerRef,
    { tools }: types.AcceptTools,
    options?: RequestOptions,
  ): Promise<types.ServerToolsResponse> {
    // Also takes whole tools, as `tools` lists them.
    const body = { tools: tools.map(({ name, hash }) => ({ name, hash })) };
    return this.call(operations.acceptTools, { path: { id: idOf(server) }, body }, options);
  }
}
