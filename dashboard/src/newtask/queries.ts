import { type CreateTask, errors } from '@rota/sdk';
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

/** The API's limit for a description of work. */
const MAX_QUERY = 2_000;

/** The agents that fit the words, best first. An empty list if none does. */
export const candidatesQuery = (words: string) => {
  const q = Array.from(words).slice(0, MAX_QUERY).join('');
  return queryOptions({
    queryKey: [...keys.agents, 'resolve', q],
    queryFn: async ({ signal }) => {
      try {
        const found = await api.agents.resolve({ q }, { signal });
        return found.candidates ?? [{ agent: found.agent, score: found.score ?? 1 }];
      } catch (error) {
        if (error instanceof errors.NotFoundError) return [];
        throw error;
      }
    },
    enabled: q.length > 2,
    placeholderData: keepPreviousData,
    staleTime: 5 * 60_000,
  });
};

export const agentDetailQuery = (name: string) =>
  queryOptions({
    queryKey: [...keys.agent(name), 'quote'],
    queryFn: async () => ({ agent: await api.agents.get(name) }),
    staleTime: 5 * 60_000,
  });

/** What a task can cost, which tools it can use and which approvals it needs. Asked for again when the money of the account moves. */
export const quoteQuery = (body: CreateTask) =>
  queryOptions({
    queryKey: [...keys.money, 'quote', body],
    queryFn: async ({ signal }) => ({ quote: await api.tasks.quote(body, { signal }) }),
    staleTime: 30_000,
  });
