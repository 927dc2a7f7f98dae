import type { ServerToolsResponse } from '@rota/sdk';
import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

export const CHECKS = 50;

export const serverQuery = (id: string) =>
  queryOptions({
    queryKey: keys.server(id),
    queryFn: async () => ({ server: await api.toolServers.get(id) }),
  });

/** The service asks the server for its tools, so this can take seconds. */
export const toolsQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.server(id), 'tools'],
    queryFn: () => api.toolServers.tools(id).firstPage(),
  });

export const checksQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.server(id), 'checks'],
    queryFn: () => api.toolServers.checks(id, { limit: CHECKS }).firstPage(),
  });

/** The answer of a change has the server and its tools: shows them, and fetches the rest again. */
export function showChange(
  cache: QueryClient,
  id: string,
  { server, tools }: ServerToolsResponse,
): void {
  cache.setQueryData(serverQuery(id).queryKey, { server });
  cache.setQueryData(toolsQuery(id).queryKey, { tools, total: tools.length });
  cache.invalidateQueries({ queryKey: keys.servers, exact: true });
  cache.invalidateQueries({ queryKey: checksQuery(id).queryKey });
  // Reviews say whether their tools are accepted.
  cache.invalidateQueries({ queryKey: keys.approvals });
  cache.invalidateQueries({ queryKey: ['task'] });
}
