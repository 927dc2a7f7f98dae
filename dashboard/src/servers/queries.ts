import { getServer, listChecks, listTools, type ServerToolsResponse } from '@rota/sdk';
import { type QueryClient, queryOptions } from '@tanstack/react-query';
import { ok } from '../api/client';
import { keys } from '../api/keys';

export const CHECKS = 50;

export const serverQuery = (id: string) =>
  queryOptions({
    queryKey: keys.server(id),
    queryFn: () => ok(getServer({ path: { id }, throwOnError: true })),
  });

/** The service asks the server for its tools, so this can take seconds. */
export const toolsQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.server(id), 'tools'],
    queryFn: () => ok(listTools({ path: { id }, throwOnError: true })),
  });

export const checksQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.server(id), 'checks'],
    queryFn: () => ok(listChecks({ path: { id }, query: { limit: CHECKS }, throwOnError: true })),
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
}
