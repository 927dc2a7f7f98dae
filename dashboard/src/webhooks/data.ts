/** What the pages about webhooks read. */
import type { DeliveryOutcome } from '@rota/sdk';
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

const PAGE = 20;
/** Deliveries are no events, so nothing announces them. */
const REFRESH_MS = 5_000;

export const webhooksQuery = queryOptions({
  queryKey: keys.webhooks,
  queryFn: () => api.webhooks.list().firstPage(),
  refetchInterval: REFRESH_MS,
});

export const deliveriesQuery = (id: string, outcome: DeliveryOutcome | undefined) =>
  infiniteQueryOptions({
    queryKey: [...keys.webhooks, id, 'deliveries', outcome],
    queryFn: ({ pageParam }) =>
      api.webhooks.deliveries(id, { outcome, limit: PAGE, offset: pageParam }).firstPage(),
    initialPageParam: 0,
    getNextPageParam: ({ deliveries, total }, _, offset) =>
      deliveries.length && offset + PAGE < total ? offset + PAGE : undefined,
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
