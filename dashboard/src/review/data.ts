/** What a decision is about, and the requests that make one. */
import type {
  ApprovalsResponse,
  ApproveParams,
  DecisionResponse,
  RejectParams,
  Review,
  ReviewItem,
  ReviewRef,
  Task,
  ToolServer,
} from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { queryClient } from '../api/cache';
import { api, exactApi, Unanswered } from '../api/client';
import { type JsonObject, stringifyExact } from '../api/exact';
import { keys } from '../api/keys';
import { shared } from './sharedStrings';

export interface ReviewData {
  task: Task;
  review: Review;
}

/**
 * The review with its task. A review of an external task is about the texts of the task, so both
 * must be of the same moment: the number of the review is the same before and after.
 */
async function fetchBoth(id: string): Promise<ReviewData> {
  let [review, task] = await Promise.all([exactApi.tasks.review(id), api.tasks.get(id)]);
  while (review.state === 'pending' && review.gate === null) {
    task = await api.tasks.get(id);
    const again = await exactApi.tasks.review(id);
    if (reference(again).digest === reference(review).digest) return { task, review: again };
    review = again;
  }
  return { task, review };
}

/** What the inbox already has, if it has all of it. */
const listed = (id: string): ReviewData | undefined =>
  queryClient
    .getQueryData<ApprovalsResponse>(keys.approvals)
    ?.approvals.find((approval) => approval.task.id === id && !approval.truncated);

export const reviewQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.task(id), 'review'],
    queryFn: () => fetchBoth(id),
    placeholderData: () => listed(id),
  });

const MAX_STEPS = 100;

export const stepsQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.task(id), 'steps-before-review'],
    queryFn: async () => {
      const page = (offset: number) =>
        api.tasks.timeline(id, { limit: MAX_STEPS, offset }).firstPage();
      const first = await page(0);
      return first.total > MAX_STEPS ? page(first.total - MAX_STEPS) : first;
    },
  });

/** What a decision names: exactly what was on screen. */
export const reference = (review: Review): ReviewRef => ({
  number: review.number ?? 0,
  digest: review.digest ?? '',
});

/** Changes whenever the decision would be about something else. */
export const fingerprint = (review: Review): string =>
  stringifyExact([
    review.number,
    review.digest,
    review.state,
    review.items.map((item) => [item.id, item.decision, item.digest ?? null]),
  ]);

export const pendingItems = (review: Review): ReviewItem[] =>
  review.items.filter((item) => item.decision === null);

export const argumentsOf = (item: ReviewItem): JsonObject => (item.arguments ?? {}) as JsonObject;

/** Whether the server of this call was disconnected. All connected ones are in `servers`. */
export const isDisconnected = (
  item: ReviewItem,
  servers: readonly ToolServer[] | undefined,
): boolean =>
  !!item.serverId && !!servers && !servers.some((server) => server.id === item.serverId);

/** Why what waits in this review cannot be approved: a changed tool, or a server that is gone. */
export function toolProblem(
  review: Review,
  servers: readonly ToolServer[] | undefined,
): 'disconnected' | 'changed' | null {
  const items = pendingItems(review);
  if (items.some((item) => isDisconnected(item, servers))) return 'disconnected';
  return items.some((item) => item.definitionAccepted === false) ? 'changed' : null;
}

/** Whether the agent asks the person something, instead of calling a tool. */
export const isQuestion = (item: ReviewItem): boolean => item.tool === 'ask_person' && !item.server;

/** Without a decision, a task is cancelled, or fails if its own deadline comes first. */
export const failsAtDeadline = ({ task, review }: ReviewData): boolean =>
  !!task.deadline &&
  !!review.expiresAt &&
  Date.parse(task.deadline) <= Date.parse(review.expiresAt);

/** What the run may still spend, in dollars, subtasks left out. Null without a budget. */
export function budgetLeft(task: Task): number | null {
  if (task.usage.budgetUsd === null) return null;
  return Math.max(0, Number(task.usage.budgetUsd) - Number(task.usage.costUsd));
}

/** A decision that was not sent says so in its own words. */
async function decided(answer: Promise<DecisionResponse>): Promise<DecisionResponse> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof Unanswered) || error.code !== 'NOT_SENT') throw error;
    throw new Unanswered(shared.notSentDecision, error.code);
  }
}

export const approve = (id: string, body: ApproveParams, key: string): Promise<DecisionResponse> =>
  decided(exactApi.tasks.approve(id, body, { idempotencyKey: key }));

export const reject = (id: string, body: RejectParams, key: string): Promise<DecisionResponse> =>
  decided(exactApi.tasks.reject(id, body, { idempotencyKey: key }));
