import type { RetryFrom, TaskStatus, TimelineStep } from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { queryClient } from '../api/cache';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { PAGE_SIZE } from './windowing';

const POLL_MS = 2_000;
/** The API's largest page. */
const STEPS_PAGE = 100;

export const isOpenStatus = (status: TaskStatus): boolean =>
  status === 'PENDING' || status === 'RUNNING' || status === 'WAITING_APPROVAL';

/** Whether a worker has it, or takes it next. */
export const isMoving = (status: TaskStatus | undefined): boolean =>
  status === 'PENDING' || status === 'RUNNING';

export interface TaskFilter {
  status?: string;
  agent?: string;
  q?: string;
}

const STATUSES: TaskStatus[] = [
  'PENDING',
  'RUNNING',
  'WAITING_APPROVAL',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
];

/** The states in a URL. What is not a state is ignored. */
export const statusesOf = (status: string | undefined): TaskStatus[] =>
  STATUSES.filter((each) => status?.split(',').includes(each));

/** One page of the list. Pages are read by index, so that a jump reads only where it ends. */
export const taskPageQuery = (filter: TaskFilter, page: number) => {
  const status = statusesOf(filter.status);
  const query = {
    status: status.length ? status : undefined,
    agent: filter.agent,
    q: filter.q,
    limit: PAGE_SIZE,
    offset: page * PAGE_SIZE,
  };
  return queryOptions({
    queryKey: [...keys.tasks, 'list', query],
    queryFn: ({ signal }) => api.tasks.list(query, { signal }).firstPage(),
  });
};

export const taskQuery = (id: string) =>
  queryOptions({
    queryKey: keys.task(id),
    queryFn: async () => ({ task: await api.tasks.get(id) }),
    // Events tell about states. Cost also grows between them.
    refetchInterval: ({ state }) => (isMoving(state.data?.task.status) ? POLL_MS : false),
  });

export const reviewQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.task(id), 'reviews'],
    queryFn: async () => ({ review: await api.tasks.review(id) }),
  });

export const retryQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.task(id), 'retry'],
    queryFn: async () => ({ retry: await api.tasks.quoteRetry(id) }),
  });

export const timelineKey = (id: string) => [...keys.task(id), 'timeline', 'all'];

/** What was read before, up to the first step that can still change. */
function unchanging(id: string): TimelineStep[] {
  const known = queryClient.getQueryData<TimelineStep[]>(timelineKey(id)) ?? [];
  const open = known.findIndex((step) => step.finishedAt === null);
  // Until the next model call, a person or the service can still refuse the answer of the last one.
  const answer = known.findLastIndex((step) => step.kind === 'model');
  const last = Math.min(...[open, answer].filter((at) => at >= 0));
  return known.slice(0, last);
}

/** All steps of a task. Finished steps are read once. `live` reads the rest again and again. */
export const timelineQuery = (id: string, live: boolean) =>
  queryOptions({
    queryKey: timelineKey(id),
    queryFn: async ({ signal }) => {
      const readAfter = async (known: TimelineStep[]) => {
        const steps = [...known];
        for (;;) {
          const query = { limit: STEPS_PAGE, offset: steps.length };
          const page = await api.tasks.timeline(id, query, { signal }).firstPage();
          steps.push(...page.steps);
          if (page.steps.length < STEPS_PAGE || steps.length >= page.total) return steps;
        }
      };
      const known = unchanging(id);
      // The last one is read again: a late result of an earlier run takes a place before it.
      const steps = await readAfter(known.slice(0, -1));
      return steps[known.length - 1]?.id === known.at(-1)?.id ? steps : readAfter([]);
    },
    refetchInterval: live ? POLL_MS : false,
  });

/** One key for each way to retry this run, so that a second click repeats and does not add. */
export const retryKeys = (): Record<RetryFrom, string> => ({
  start: newIdempotencyKey(),
  failure: newIdempotencyKey(),
});
