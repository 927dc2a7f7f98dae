/** When a request is sent again, and after how long. */
import {
  APIConnectionError,
  APIError,
  RateLimitError,
  RequestTimeoutError,
  ToolServerError,
} from './errors.ts';

const FIRST_MS = 500;
const MOST_MS = 8_000;
/** A client that is told to wait longer than this fails instead. A window of the rate limit has 60 s. */
export const LONGEST_WAIT_MS = 60_000;

/**
 * How often in a row something that takes long fails before it gives up: a stream that connects, or
 * `wait`. Together with the time between the attempts, this is more than a minute. A client that
 * repeats nothing gives up at once.
 */
export const maxFailures = (maxRetries: number): number => maxRetries && Math.max(20, maxRetries);

/** Grows with each attempt. It is random, so that clients do not come back together. */
export const backoffMs = (attempt: number, firstMs = FIRST_MS): number =>
  (0.5 + Math.random() / 2) * Math.min(MOST_MS, firstMs * 2 ** attempt);

/**
 * How often the pause grows while another request with the same key is in progress: up to 4 s, so that
 * its end is noticed soon.
 */
export const MOST_GROWTH = 3;

/** How long to wait before the next attempt. Null if there should be none. */
export function delayMs(error: unknown, attempt: number, repeatable: boolean): number | null {
  if (error instanceof APIConnectionError) {
    return repeatable || !error.wasSent ? backoffMs(attempt) : null;
  }
  if (!(error instanceof APIError) || !canPassLater(error, repeatable)) return null;
  if (error.retryAfterS === null) return backoffMs(attempt);
  const askedMs = error.retryAfterS * 1_000;
  return askedMs > LONGEST_WAIT_MS ? null : askedMs + backoffMs(0) * Math.random();
}

function canPassLater(error: APIError, repeatable: boolean): boolean {
  // The service did not handle these requests.
  if (error instanceof RateLimitError || error instanceof RequestTimeoutError) return true;
  // The tool server may have done the work, and would do it again.
  if (error instanceof ToolServerError) return false;
  // A proxy also sends 408.
  return repeatable && (error.status >= 500 || error.status === 408);
}

/** Waits, until the signal ends it. With `online`, it ends early when a browser's network is back. */
export function pause(ms: number, signal?: AbortSignal, online = false): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      globalThis.removeEventListener?.('online', done);
    };
    const done = () => {
      end();
      resolve();
    };
    const abort = () => {
      end();
      reject(signal?.reason);
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted) return abort();
    signal?.addEventListener('abort', abort);
    if (online) globalThis.addEventListener?.('online', done);
  });
}
