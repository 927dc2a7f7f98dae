import { type CreateTask, createTask, getAgent, resolveAgent } from '@rota/sdk';
import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { ApiError, ok } from '../api/client';
import { quoted } from '../api/created';
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
        const found = await ok(resolveAgent({ query: { q }, signal, throwOnError: true }));
        return found.candidates ?? [{ agent: found.agent, score: found.score ?? 1 }];
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return [];
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
    queryFn: () => ok(getAgent({ path: { name }, throwOnError: true })),
    staleTime: 5 * 60_000,
  });

/** What a task would cost, use and ask. Asked for again when the money of the account moves. */
export const quoteQuery = (body: CreateTask) =>
  queryOptions({
    queryKey: [...keys.money, 'quote', body],
    queryFn: ({ signal }) =>
      quoted(createTask({ body: { ...body, dryRun: true }, signal, throwOnError: true })),
    staleTime: 30_000,
  });
