import {
  agentStatistics,
  getAgent,
  getUsage,
  listAgents,
  listAgentVersions,
  listTasks,
} from '@rota/sdk';
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { ok } from '../api/client';
import { keys } from '../api/keys';

/** The service's own search: it also knows what each agent is for, and other forms of a word. */
export const searchQuery = (search: string) =>
  queryOptions({
    queryKey: [...keys.agents, 'search', search],
    queryFn: async () =>
      (await ok(listAgents({ query: { search, limit: 200 }, throwOnError: true }))).agents,
    enabled: search !== '',
    placeholderData: keepPreviousData,
    staleTime: 5 * 60_000,
  });

/** What each agent cost in the last 30 days, by name. */
export const spentQuery = queryOptions({
  queryKey: [...keys.money, 'spent-by-agent'],
  queryFn: async () => {
    const { usage } = await ok(getUsage({ query: { groupBy: 'agent' }, throwOnError: true }));
    return Object.fromEntries(usage.map((each) => [each.key, each.costUsd]));
  },
});

export const agentQuery = (name: string) =>
  queryOptions({
    queryKey: keys.agent(name),
    queryFn: async () => (await ok(getAgent({ path: { name }, throwOnError: true }))).agent,
    staleTime: 5 * 60_000,
  });

export const versionsQuery = (name: string) =>
  queryOptions({
    queryKey: [...keys.agent(name), 'versions'],
    queryFn: () =>
      ok(listAgentVersions({ path: { name }, query: { limit: 100 }, throwOnError: true })),
    staleTime: 5 * 60_000,
  });

export const statisticsQuery = (name: string) =>
  queryOptions({
    queryKey: [...keys.agent(name), 'statistics'],
    queryFn: async () =>
      (await ok(agentStatistics({ path: { name }, throwOnError: true }))).statistics,
  });

export const lastRunsQuery = (agent: string) =>
  queryOptions({
    queryKey: [...keys.tasks, 'of-agent', agent],
    queryFn: () => ok(listTasks({ query: { agent, limit: 10 }, throwOnError: true })),
  });
