import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

/** The service's own search: it also knows what each agent is for, and other forms of a word. */
export const searchQuery = (search: string) =>
  queryOptions({
    queryKey: [...keys.agents, 'search', search],
    queryFn: async () => (await api.agents.list({ search, limit: 200 }).firstPage()).agents,
    enabled: search !== '',
    placeholderData: keepPreviousData,
    staleTime: 5 * 60_000,
  });

/** What each agent cost in the last 30 days, by name. */
export const spentQuery = queryOptions({
  queryKey: [...keys.money, 'spent-by-agent'],
  queryFn: async () => {
    const { usage } = await api.credits.usage({ groupBy: 'agent' });
    return Object.fromEntries(usage.map((each) => [each.key, each.costUsd]));
  },
});

export const agentQuery = (name: string) =>
  queryOptions({
    queryKey: keys.agent(name),
    queryFn: () => api.agents.get(name),
    staleTime: 5 * 60_000,
  });

export const versionsQuery = (name: string) =>
  queryOptions({
    queryKey: [...keys.agent(name), 'versions'],
    queryFn: () => api.agents.versions(name, { limit: 100 }).firstPage(),
    staleTime: 5 * 60_000,
  });

export const statisticsQuery = (name: string) =>
  queryOptions({
    queryKey: [...keys.agent(name), 'statistics'],
    queryFn: () => api.agents.statistics(name),
  });

export const lastRunsQuery = (agent: string) =>
  queryOptions({
    queryKey: [...keys.tasks, 'of-agent', agent],
    queryFn: () => api.tasks.list({ agent, limit: 10 }).firstPage(),
  });
