/** What several screens read: the caller, the agents, the balance, what waits. */
import {
  getBalance,
  getCatalog,
  getCreditSettings,
  listApprovals,
  listServers,
  listTasks,
  me,
} from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { ok } from './client';
import { keys } from './keys';

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: () => ok(me({ throwOnError: true })),
  staleTime: 5 * 60_000,
});

export const approvalsQuery = queryOptions({
  queryKey: keys.approvals,
  queryFn: () => ok(listApprovals({ query: { limit: 100 }, throwOnError: true })),
});

export const runningQuery = queryOptions({
  queryKey: [...keys.tasks, 'running'],
  queryFn: () =>
    ok(listTasks({ query: { status: ['RUNNING', 'PENDING'], limit: 1 }, throwOnError: true })),
});

export const agentsQuery = queryOptions({
  queryKey: keys.agents,
  queryFn: async () => {
    const { catalog } = await ok(getCatalog({ throwOnError: true }));
    return catalog.flatMap((section) => section.agents);
  },
  staleTime: 5 * 60_000,
});

export const balanceQuery = queryOptions({
  queryKey: [...keys.money, 'balance'],
  queryFn: () => ok(getBalance({ throwOnError: true })),
});

export const creditSettingsQuery = queryOptions({
  queryKey: [...keys.money, 'settings'],
  queryFn: () => ok(getCreditSettings({ throwOnError: true })),
});

export const serversQuery = queryOptions({
  queryKey: keys.servers,
  queryFn: () => ok(listServers({ throwOnError: true })),
});
