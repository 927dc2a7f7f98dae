/** Tasks: create them, follow them, decide about them. */
import { type APIError, apiError, WaitTimeoutError } from '../errors.ts';
import { decoded, hasEnded, type TaskEvent } from '../events.ts';
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import { unkeyed } from '../operation.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { type Filters, idOf } from '../request.ts';
import { Resource } from '../resource.ts';
import { maxFailures, pause } from '../retries.ts';
import { EventStream, type FollowOptions } from '../streams.ts';
import { Deadline } from '../timeouts.ts';

/** A task, or its ID. */
export type TaskRef = string | { id: string };

/** The review that a person looked at: its number and its digest decide what is decided. */
export interface ShownReview {
  number: number | null;
  digest: string | null;
}

/** The outcome of one task of a batch: the task, or the error that `create` would throw. */
export type TaskOutcome = { task: types.Task; error: null } | { task: null; error: APIError };

export type NewTask = Omit<types.CreateTask, 'dryRun'>;
export type NewFork = Omit<types.ForkTask, 'dryRun'>;
export type ApproveParams = Omit<types.ApproveTask, 'review'> & { review: ShownReview };
export type RejectParams = Omit<types.RejectTask, 'review'> & { review: ShownReview };

export interface WaitOptions {
  /** After this time, `wait` throws WaitTimeoutError and the task continues. */
  timeoutMs?: number | undefined;
  /** Also returns when the task waits for a person. */
  untilReview?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

// `wait` asks more and more rarely, so that a long task costs few requests.
const FIRST_POLL_MS = 250;
const MOST_POLL_MS = 5_000;

// A dry run is not stored, so it has no Idempotency-Key, and its response is a quote.
const quoteTask = unkeyed<types.QuoteResponse>(operations.createTask);
const quoteFork = unkeyed<types.QuoteResponse>(operations.forkTask);

export class Tasks extends Resource {
  /**
   * Creates a task. With an agent, the service runs it.
   *
   * The request has an Idempotency-Key, so a lost response never makes a second task. Pass your own
   * key if your program may repeat the call after a restart.
   */
  async create(task: NewTask, options?: KeyedRequestOptions): Promise<types.Task> {
    return (await this.call(operations.createTask, { body: task }, options)).task;
  }

  /** What a task can cost, which tools it can use and which approvals it needs. Nothing is created. */
  async quote(task: NewTask, options?: RequestOptions): Promise<types.Quote> {
    const body: types.CreateTask = { ...task, dryRun: true };
    return (await this.call(quoteTask, { body }, options)).quote;
  }

  /** Creates up to 1,000 tasks at once. Each has an outcome of its own, in the same order. */
  async createBatch(
    tasks: types.CreateTasks['tasks'],
    options?: KeyedRequestOptions,
  ): Promise<TaskOutcome[]> {
    const { results } = await this.call(operations.createTasks, { body: { tasks } }, options);
    return results.map((result) =>
      'task' in result
        ? { task: result.task, error: null }
        : { task: null, error: apiError(result.error) },
    );
  }

  /**
   * The tasks that match every filter, newest first.
   *
   * Long texts can be cut on a page: `truncated` of a task names them. `get` returns the whole task.
   */
  list(
    query: Filters<types.ListTasksData> = {},
    options?: RequestOptions,
  ): Pages<types.Task, types.TasksResponse> {
    return this.offsetList(
      operations.listTasks,
      (page) => page.tasks,
      (task) => task.id,
      query,
      { options },
    );
  }

  async get(task: TaskRef, options?: RequestOptions): Promise<types.Task> {
    return (await this.call(operations.getTask, { path: { id: idOf(task) } }, options)).task;
  }

  /**
   * Changes the fields that are given. Null clears a field.
   *
   * `logs` and `actions` are appended. If the response to such a change is lost, it is not sent again,
   * because it could be appended twice.
   */
  async update(
    task: TaskRef,
    changes: types.PatchTask,
    options?: RequestOptions,
  ): Promise<types.Task> {
    const repeatable = changes.logs == null && changes.actions == null;
    const parts = { path: { id: idOf(task) }, body: changes, repeatable };
    return (await this.call(operations.patchTask, parts, options)).task;
  }

  /** Cancels the task, its run and its subtasks. */
  cancel(task: TaskRef, options?: RequestOptions): Promise<types.Task> {
    return this.update(task, { status: 'CANCELLED' }, options);
  }

  /** What waits for a person, and what was decided before. */
  async review(task: TaskRef, options?: RequestOptions): Promise<types.Review> {
    return (await this.call(operations.reviewTask, { path: { id: idOf(task) } }, options)).review;
  }

  /**
   * Approves what the review shows, or only the items in `decisions`.
   *
   * `review` is the review that a person looked at. If something else waits by then, nothing is decided
   * and StaleReviewError has the review that waits now.
   *
   * `decisions` approves only the items that it names, so name every item that you approve. If
   * `review.state` of the response is `pending`, something still waits: an item that you did not name,
   * or, if the policies require a second person, a new review of your arguments, and nothing is approved.
   */
  async approve(
    task: TaskRef,
    approval: ApproveParams,
    options?: KeyedRequestOptions,
  ): Promise<types.DecisionResponse> {
    const body = { ...approval, review: referenceTo(approval.review) };
    return this.call(operations.approveTask, { path: { id: idOf(task) }, body }, options);
  }

  /** Rejects what the review shows. With `resume`, the agent continues with the reason. */
  async reject(
    task: TaskRef,
    rejection: RejectParams,
    options?: KeyedRequestOptions,
  ): Promise<types.DecisionResponse> {
    const body = { ...rejection, review: referenceTo(rejection.review) };
    return this.call(operations.rejectTask, { path: { id: idOf(task) }, body }, options);
  }

  /** Hides the task from the caller's list of approvals until then. Null shows it again. */
  async snooze(
    task: TaskRef,
    snooze: types.SnoozeTask,
    options?: RequestOptions,
  ): Promise<string | null> {
    const parts = { path: { id: idOf(task) }, body: snooze };
    return (await this.call(operations.snoozeTask, parts, options)).snoozedUntil;
  }

  /** Runs a failed task again. From `failure`, finished steps are kept and not paid again. */
  async retry(
    task: TaskRef,
    body: types.RetryTask = {},
    options?: KeyedRequestOptions,
  ): Promise<types.Task> {
    return (await this.call(operations.retryTask, { path: { id: idOf(task) }, body }, options))
      .task;
  }

  /** What a retry would do and cost. */
  async quoteRetry(task: TaskRef, options?: RequestOptions): Promise<types.RetryQuote> {
    return (await this.call(operations.quoteRetry, { path: { id: idOf(task) } }, options)).retry;
  }

  /** Creates a task that takes the steps of this one up to `fromStep` and continues. */
  async fork(task: TaskRef, body: NewFork, options?: KeyedRequestOptions): Promise<types.Task> {
    return (await this.call(operations.forkTask, { path: { id: idOf(task) }, body }, options)).task;
  }

  /** What a fork can cost, which tools it can use and which approvals it needs. Nothing is created. */
  async quoteFork(task: TaskRef, fork: NewFork, options?: RequestOptions): Promise<types.Quote> {
    const body: types.ForkTask = { ...fork, dryRun: true };
    return (await this.call(quoteFork, { path: { id: idOf(task) }, body }, options)).quote;
  }

  /** The steps, versions and models that a fork can use. */
  async forkOptions(task: TaskRef, options?: RequestOptions): Promise<types.ForkOptions> {
    return (await this.call(operations.forkOptions, { path: { id: idOf(task) } }, options)).fork;
  }

  /** Each model call, tool call and approval of the task, oldest first. */
  timeline(
    task: TaskRef,
    query: Filters<types.TaskTimelineData> = {},
    options?: RequestOptions,
  ): Pages<types.TimelineStep, types.TimelineResponse> {
    return this.offsetList(
      operations.taskTimeline,
      (page) => page.steps,
      (step) => step.id,
      query,
      { path: { id: idOf(task) }, options },
    );
  }

  /**
   * What the task did, who decided about it and what it cost, in one signed document.
   *
   * `rota receipt verify` checks it.
   */
  receipt(task: TaskRef, options?: RequestOptions): Promise<types.ReceiptResponse> {
    return this.call(operations.taskReceipt, { path: { id: idOf(task) } }, options);
  }

  /**
   * The events of the task, from the first one or after a sequence number, until it ends.
   *
   * Every event comes once and in order, however often the connection breaks. Between them come
   * `TextDelta` and `TextSnapshot`: the text of a model while it is written.
   */
  follow(task: TaskRef, options: FollowOptions = {}): EventStream<TaskEvent> {
    const id = idOf(task);
    const request = this.request(operations.taskEvents, { path: { id } });
    return new EventStream(this.transport, request, decoded, options, id);
  }

  /** The task when it has ended. A failed task throws nothing: check `status` and `error`. */
  async wait(task: TaskRef, options: WaitOptions = {}): Promise<types.Task> {
    const { timeoutMs = Number.POSITIVE_INFINITY, untilReview = false, signal } = options;
    const deadline = performance.now() + timeoutMs;
    // The last look has a second.
    const limit = new Deadline(timeoutMs + 1_000, signal);
    const maxRetries = maxFailures(this.transport.settings.maxRetries);
    let status = 'not known';
    const late = (cause?: unknown) =>
      new WaitTimeoutError(`The task is ${status} after ${timeoutMs} ms. It continues.`, { cause });
    try {
      for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 1.5, MOST_POLL_MS)) {
        const found = await this.get(task, { signal: limit.signal, maxRetries });
        status = found.status;
        if (hasEnded(status) || (untilReview && status === 'WAITING_APPROVAL')) return found;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0) throw late();
        await pause(Math.min(pauseMs, leftMs), limit.signal);
      }
    } catch (error) {
      throw limit.hasPassed ? late(error) : error;
    } finally {
      limit.clear();
    }
  }
}

export class Approvals extends Resource {
  /**
   * Everything that waits for a person, longest wait first.
   *
   * If `truncated` is true, read the whole review with `tasks.review` before you decide. If as many
   * approvals are added as are decided between two pages, some can be skipped: read the list again.
   */
  list(
    query: Filters<types.ListApprovalsData> = {},
    options?: RequestOptions,
  ): Pages<types.Approval, types.ApprovalsResponse> {
    return this.offsetList(
      operations.listApprovals,
      (page) => page.approvals,
      ({ task, review }) => `${task.id} ${review.number}`,
      query,
      { options },
    );
  }
}

function referenceTo({ number, digest }: ShownReview): types.ReviewRef {
  if (number === null || digest === null) {
    throw new TypeError('This review has nothing to decide: no number and no digest.');
  }
  return { number, digest };
}
