/** What several screens read: the caller, the agents, the balance, what waits. */
import { queryOptions } from '@tanstack/react-query';
import { api, exactApi } from './client';
import { keys } from './keys';

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: () => api.me(),
  staleTime: 5 * 60_000,
});

export const issuersQuery = queryOptions({
  queryKey: keys.issuers,
  queryFn: () => api.auth.config(),
});

const PAGE = 100;

/** Everything that waits, oldest first, with the numbers of its arguments as they are. */
export const approvalsQuery = queryOptions({
  queryKey: keys.approvals,
  queryFn: async () => {
    const page = (offset: number) => exactApi.approvals.list({ limit: PAGE, offset }).firstPage();
    const { approvals, total } = await page(0);
    const found = new Map(approvals.map((approval) => [approval.task.id, approval]));
    for (let offset = PAGE; offset < total; offset += PAGE) {
      for (const approval of (await page(offset)).approvals) found.set(approval.task.id, approval);
    }
    return { approvals: [...found.values()], total };
  },
});

export const runningQuery = queryOptions({
  queryKey: [...keys.tasks, 'running'],
  queryFn: () => api.tasks.list({ status: ['RUNNING', 'PENDING'], limit: 1 }).firstPage(),
});

export const agentsQuery = queryOptions({
  queryKey: keys.agents,
  queryFn: async () => (await api.agents.catalog()).flatMap((section) => section.agents),
  staleTime: 5 * 60_000,
});

export const balanceQuery = queryOptions({
  queryKey: [...keys.money, 'balance'],
  queryFn: () => api.credits.balance(),
});

export const creditSettingsQuery = queryOptions({
  queryKey: [...keys.money, 'settings'],
  queryFn: async () => ({ settings: await api.credits.settings() }),
});

export const serversQuery = queryOptions({
  queryKey: keys.servers,
  queryFn: () => api.toolServers.list().firstPage(),
});
