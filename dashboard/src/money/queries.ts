/** What the money screen reads. Events about tasks and credits make all of it old. */
import type { TransactionKind } from '@rota/sdk';
import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';
import type { PaymentKind } from './checkout';

export type Grouping = 'agent' | 'model' | 'total';

/** Transactions on a page. */
const PAGE = 25;

export const forecastQuery = queryOptions({
  queryKey: [...keys.money, 'forecast'],
  queryFn: () => api.credits.forecast(),
});

export const holdsQuery = (limit: number) =>
  queryOptions({
    queryKey: [...keys.money, 'holds', limit],
    queryFn: () => api.credits.holds({ limit }).firstPage(),
    placeholderData: keepPreviousData,
  });

const groupBy = { agent: 'day,agent', model: 'day,model', total: 'day' } as const;

export const usageQuery = (grouping: Grouping) =>
  queryOptions({
    queryKey: [...keys.money, 'usage', grouping],
    queryFn: () => api.credits.usage({ groupBy: groupBy[grouping] }),
    placeholderData: keepPreviousData,
  });

/** `kinds` are separated by commas. Without them, all are read. */
export const fetchTransactions = (kinds: string | undefined, offset: number, limit: number) =>
  api.credits
    .transactions({ kind: kinds?.split(',') as TransactionKind[] | undefined, offset, limit })
    .firstPage();

export const transactionsQuery = (kinds: string | undefined) =>
  infiniteQueryOptions({
    queryKey: [...keys.money, 'transactions', kinds ?? 'all'],
    queryFn: ({ pageParam }) => fetchTransactions(kinds, pageParam, PAGE),
    initialPageParam: 0,
    getNextPageParam: (last, pages) =>
      pages.length * PAGE < last.total ? pages.length * PAGE : undefined,
    placeholderData: keepPreviousData,
  });

export const subscriptionQuery = queryOptions({
  queryKey: [...keys.plan, 'subscription'],
  queryFn: () => api.subscriptions.get(),
});

export const passQuery = queryOptions({
  queryKey: [...keys.plan, 'pass'],
  queryFn: () => api.connectPass.billing(),
});

export const offerQuery = queryOptions({
  queryKey: [...keys.plan, 'offer'],
  queryFn: () => api.subscriptions.plans(),
  staleTime: 60 * 60_000,
});

/** A text that changes when a payment of this kind arrives. */
export const paymentStateQuery = (kind: PaymentKind) =>
  queryOptions({
    queryKey: [...keys.money, 'payment', kind],
    queryFn: async () => {
      if (kind === 'topUp') {
        return String((await api.credits.balance()).totalLoadedCents);
      }
      if (kind === 'plan') {
        return JSON.stringify((await api.subscriptions.get()).subscription);
      }
      return JSON.stringify((await api.connectPass.billing()).billing);
    },
  });
