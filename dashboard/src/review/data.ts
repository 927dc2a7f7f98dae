/** What a decision is about, and the requests that make one. */
import {
  type ApprovalsResponse,
  type ApproveTask,
  approveTask,
  type DecisionResponse,
  getTask,
  type RejectTask,
  type Review,
  type ReviewItem,
  type ReviewRef,
  type ReviewResponse,
  rejectTask,
  reviewTask,
  type Task,
  taskTimeline,
} from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { queryClient } from '../api/cache';
import { ApiError, ok } from '../api/client';
import { type JsonObject, parseExact, stringifyExact } from '../api/exact';
import { keys } from '../api/keys';
import { strings } from './strings';

export interface ReviewData {
  task: Task;
  review: Review;
}

async function fetchReview(id: string): Promise<Review> {
  const body: unknown = await ok(reviewTask({ path: { id }, parseAs: 'text', throwOnError: true }));
  return parseExact<ReviewResponse>(String(body)).review;
}

const fetchTask = async (id: string): Promise<Task> =>
  (await ok(getTask({ path: { id }, throwOnError: true }))).task;

/**
 * The review with its task. A review of an external task is about the texts of the task, so both
 * must be of the same moment: the number of the review is the same before and after.
 */
async function fetchBoth(id: string): Promise<ReviewData> {
  let [review, task] = await Promise.all([fetchReview(id), fetchTask(id)]);
  while (review.state === 'pending' && review.gate === null) {
    task = await fetchTask(id);
    const again = await fetchReview(id);
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
        ok(taskTimeline({ path: { id }, query: { limit: MAX_STEPS, offset }, throwOnError: true }));
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

/** Whether a tool of this review was changed by its server since it was accepted. */
export const definitionChanged = (review: Review): boolean =>
  pendingItems(review).some((item) => item.definitionAccepted === false);

/** Whether the agent asks the person something, instead of calling a tool. */
export const isQuestion = (item: ReviewItem): boolean => item.tool === 'ask_person' && !item.server;

/** What the run may still spend, in dollars, subtasks left out. Null without a budget. */
export function budgetLeft(task: Task): number | null {
  if (task.usage.budgetUsd === null) return null;
  return Math.max(0, Number(task.usage.budgetUsd) - Number(task.usage.costUsd));
}

/** The answer to a decision. A decision that was not sent says so in its own words. */
async function decided(answer: Promise<unknown>): Promise<DecisionResponse> {
  try {
    return parseExact<DecisionResponse>(String(await answer));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'NOT_SENT') throw error;
    throw new ApiError(strings.notSentDecision, 0, error.code, null, null);
  }
}

export async function approve(id: string, body: ApproveTask, key: string) {
  return decided(
    ok(
      approveTask({
        path: { id },
        body,
        headers: { 'Idempotency-Key': key },
        bodySerializer: stringifyExact,
        parseAs: 'text',
        throwOnError: true,
      }),
    ),
  );
}

export async function reject(id: string, body: RejectTask, key: string) {
  return decided(
    ok(
      rejectTask({
        path: { id },
        body,
        headers: { 'Idempotency-Key': key },
        parseAs: 'text',
        throwOnError: true,
      }),
    ),
  );
}
