/** What the API knows about standing rules. The values of their conditions keep every digit. */
import type { CreateRule } from '@rota/sdk';
import { infiniteQueryOptions } from '@tanstack/react-query';
import { api, exactApi } from '../api/client';
import { keys } from '../api/keys';

const PAGE = 100;

/** The rules, newest first, including those that no longer work. */
export const rulesQuery = infiniteQueryOptions({
  queryKey: keys.rules,
  queryFn: ({ pageParam }) => exactApi.rules.list({ limit: PAGE, offset: pageParam }).firstPage(),
  initialPageParam: 0,
  getNextPageParam: ({ rules, total }, _, offset) =>
    rules.length && offset + PAGE < total ? offset + PAGE : undefined,
});

export const createRule = (body: CreateRule, key: string) =>
  exactApi.rules.create(body, { idempotencyKey: key });

export const revokeRule = (id: string) => api.rules.delete(id);
