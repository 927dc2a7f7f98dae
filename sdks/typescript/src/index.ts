/** The TypeScript SDK of Rota: `Rota` is its client. */
export { Rota } from './client.ts';
export * as errors from './errors.ts';
export { APIConnectionError, APIError, RotaError, StaleReviewError } from './errors.ts';
export type { TaskEvent, TextDelta, TextSnapshot } from './events.ts';
export type * from './generated/types.gen.ts';
export type {
  Json,
  KeyedRequestOptions,
  OtherOptions,
  RequestOptions,
  RotaOptions,
} from './options.ts';
export type { Pages } from './pages.ts';
export type { FollowEventsOptions } from './resources/account.ts';
export type {
  ApproveParams,
  NewFork,
  NewTask,
  RejectParams,
  ShownReview,
  TaskOutcome,
  WaitOptions,
} from './resources/tasks.ts';
export type { EventStream, FollowOptions } from './streams.ts';
export { VERSION } from './version.ts';
export * as webhooks from './webhooks.ts';
