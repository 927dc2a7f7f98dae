/** What the money screen reads. Events about tasks and credits make all of it old. */
import {
  connectPassBilling,
  getBalance,
  getForecast,
  getSubscription,
  getUsage,
  listHolds,
  listPlans,
  listTransactions,
  type TransactionKind,
} from '@rota/sdk';
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { ok } from '../api/client';
import { keys } from '../api/keys';
import type { PaymentKind } from './checkout';

export type Grouping = 'agent' | 'model' | 'total';

/** Movements on a page. */
const PAGE = 25;

export const forecastQuery = queryOptions({
  queryKey: [...keys.money, 'forecast'],
  queryFn: async () => (await ok(getForecast({ throwOnError: true }))).forecast,
});

export const holdsQuery = (limit: number) =>
  queryOptions({
    queryKey: [...keys.money, 'holds', limit],
    queryFn: () => ok(listHolds({ query: { limit }, throwOnError: true })),
    placeholderData: keepPreviousData,
  });

const groupBy = { agent: 'day,agent', model: 'day,model', total: 'day' } as const;

export const usageQuery = (grouping: Grouping) =>
  queryOptions({
    queryKey: [...keys.money, 'usage', grouping],
    queryFn: () => ok(getUsage({ query: { groupBy: groupBy[grouping] }, throwOnError: true })),
    placeholderData: keepPreviousData,
  });

/** `kinds` are separated by commas. Without them, all are read. */
export const fetchMovements = (kinds: string | undefined, offset: number, limit: number) =>
  ok(
    listTransactions({
      query: { kind: kinds?.split(',') as TransactionKind[] | undefined, offset, limit },
      throwOnError: true,
    }),
  );

export const movementsQuery = (kinds: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...keys.money, 'movements', kinds ?? 'all'],
    queryFn: ({ pageParam }) => fetchMovements(kinds, pageParam, PAGE),
    initialPageParam: 0,
    getNextPageParam: (last, pages) =>
      pages.length * PAGE < last.total ? pages.length * PAGE : undefined,
    placeholderData: keepPreviousData,
  });

export const subscriptionQuery = queryOptions({
  queryKey: [...keys.plan, 'subscription'],
  queryFn: () => ok(getSubscription({ throwOnError: true })),
});

export const passQuery = queryOptions({
  queryKey: [...keys.plan, 'pass'],
  queryFn: () => ok(connectPassBilling({ throwOnError: true })),
});

export const offerQuery = queryOptions({
  queryKey: [...keys.plan, 'offer'],
  queryFn: () => ok(listPlans({ throwOnError: true })),
  staleTime: 60 * 60_000,
});

/** A text that changes when a payment of this kind arrives. */
export const paymentStateQuery = (kind: PaymentKind) =>
  queryOptions({
    queryKey: [...keys.money, 'payment', kind],
    queryFn: async () => {
      if (kind === 'topUp') {
        return String((await ok(getBalance({ throwOnError: true }))).totalLoadedCents);
      }
      if (kind === 'plan') {
        return JSON.stringify((await ok(getSubscription({ throwOnError: true }))).subscription);
      }
      return JSON.stringify((await ok(connectPassBilling({ throwOnError: true }))).billing);
    },
  });
