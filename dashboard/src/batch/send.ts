/**
 * Sends a batch in requests of at most 1,000 tasks, one after the other.
 *
 * Each request keeps its Idempotency-Key until it has an answer, so that trying again creates no
 * task twice.
 */
import { APIError, type BatchTask, errors } from '@rota/sdk';
import { newIdempotencyKey } from '../api/client';
import { strings } from './strings';

const MAX_TASKS = 1_000;
/** The API takes 2 MiB. Some of it is for the names of the fields around the tasks. */
const MAX_BYTES = 2_000_000;
/** The API knows a key for 24 hours. After that, the same request would create the tasks again. */
const KEY_MS = 23 * 3_600_000;

export type Outcome =
  | { kind: 'created'; id: string }
  | { kind: 'refused'; message: string }
  /** Nothing was sent, so it does not exist. */
  | { kind: 'unsent' }
  /** It was sent, and no answer came. */
  | { kind: 'unknown' };

/** Outcomes by the number of the task in the batch. */
export type Outcomes = ReadonlyMap<number, Outcome>;

export interface Numbered {
  number: number;
  task: BatchTask;
}

/** One request. */
export interface Part {
  key: string;
  tasks: Numbered[];
  /** Whether it was sent without an answer, so some of its tasks may exist. */
  uncertain: boolean;
  /** When it was sent for the first time that may have created tasks. */
  sentAt: number | null;
}

const part = (tasks: Numbered[]): Part => ({
  key: newIdempotencyKey(),
  tasks,
  uncertain: false,
  sentAt: null,
});

/** Whether it may not be sent again, because the API may no longer know its key. */
export const isTooOld = ({ uncertain, sentAt }: Part): boolean =>
  uncertain && sentAt !== null && Date.now() - sentAt > KEY_MS;

export function partsOf(tasks: Numbered[]): Part[] {
  const encoder = new TextEncoder();
  const parts: Part[] = [];
  let bytes = 0;
  for (const each of tasks) {
    const size = encoder.encode(JSON.stringify(each.task)).length + 1;
    const last = parts.at(-1);
    if (last && last.tasks.length < MAX_TASKS && bytes + size <= MAX_BYTES) {
      last.tasks.push(each);
      bytes += size;
    } else {
      parts.push(part([each]));
      bytes = size;
    }
  }
  return parts;
}

export interface Sender {
  /** Sends one request. Returns an outcome for each task, in order. */
  send: (part: Part) => Promise<Outcome[]>;
  report: (outcomes: Outcomes) => void;
  /** Waits because the account has sent too much. */
  wait: (seconds: number) => Promise<void>;
  isStopped: () => boolean;
}

/** Whether the request may have created tasks although it failed. */
function mayHaveCreated(error: unknown): boolean {
  if (!(error instanceof APIError)) return true;
  // 409: the request before it, with the same key, is still in progress.
  if (error.status === 409 || error.status >= 500) return true;
  return error.status === 0 && error.code !== 'NOT_SENT';
}

/** The tasks of a request that the API cannot read, by their number. Nothing was created. */
function unreadable(error: unknown, { tasks }: Part): Map<number, Outcome> {
  const found = new Map<number, Outcome>();
  if (!(error instanceof errors.ValidationError)) return found;
  for (const { field, message } of error.fields) {
    const [, at, name] = /^tasks\.(\d+)\.(\w+)/.exec(field) ?? [];
    const number = tasks[Number(at)]?.number;
    if (number !== undefined && name && !found.has(number)) {
      found.set(number, { kind: 'refused', message: strings.fieldProblem(name, message) });
    }
  }
  return found;
}

/**
 * Sends the parts, and removes each when it has its answer. Throws if one gets none; the same call
 * with the parts that are left continues from there, unless that part is too old.
 */
export async function sendParts(parts: Part[], sender: Sender): Promise<void> {
  for (let next = parts[0]; next && !sender.isStopped(); next = parts[0]) {
    if (isTooOld(next)) return;
    if (!next.uncertain) next.sentAt = Date.now();
    try {
      const outcomes = await sender.send(next);
      sender.report(new Map(next.tasks.map(({ number }, at) => [number, outcomes[at] as Outcome])));
      parts.shift();
    } catch (error) {
      const refused = unreadable(error, next);
      if (refused.size) {
        sender.report(refused);
        const rest = next.tasks.filter(({ number }) => !refused.has(number));
        parts.splice(0, 1, ...(rest.length ? [part(rest)] : []));
      } else if (error instanceof errors.RateLimitError) {
        await sender.wait(error.retryAfterS ?? 1);
      } else {
        next.uncertain ||= mayHaveCreated(error);
        throw error;
      }
    }
  }
}

/** What is known about the tasks of requests that are given up. */
export function givenUp(parts: Part[]): Outcomes {
  return new Map(
    parts.flatMap(({ tasks, uncertain }) =>
      tasks.map(({ number }) => [number, { kind: uncertain ? 'unknown' : 'unsent' }] as const),
    ),
  );
}
