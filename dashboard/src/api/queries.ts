/** What several screens read: the caller, the agents, the balance, what waits. */
import {
  type ApprovalsResponse,
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
import { parseExact } from './exact';
import { keys } from './keys';

export const meQuery = queryOptions({
  queryKey: keys.me,
  queryFn: () => ok(me({ throwOnError: true })),
  staleTime: 5 * 60_000,
});

const PAGE = 100;

/** Everything that waits, oldest first, with the numbers of its arguments as they are. */
export const approvalsQuery = queryOptions({
  queryKey: keys.approvals,
  queryFn: async () => {
    const page = async (offset: number) => {
      const query = { limit: PAGE, offset };
      const body: unknown = await ok(listApprovals({ query, parseAs: 'text', throwOnError: true }));
      return parseExact<ApprovalsResponse>(String(body));
    };
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
