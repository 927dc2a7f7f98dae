/** The client of the service, for a browser that is signed in by cookie. */
import { APIError, errors, Rota } from '@rota/sdk';
import type {} from '../early';
import { noteRenewal } from '../signin/renewal';
import { parseExact, stringifyExact } from './exact';

let account: string | null = null;

/**
 * Selects the account that requests are about. The URL of the page names it. Returns whether
 * another one was selected, whose data must not be shown.
 */
export function selectAccount(id: string | null): boolean {
  const changed = account !== null && account !== id;
  account = id;
  return changed;
}

export const selectedAccount = (): string | null => account;

const { early } = window;
/** After this time since the page was opened, early answers are too old. */
const EARLY_MS = 10_000;

/** The answer to this request if it was made before the dashboard was loaded. It is used once. */
function takeEarly(path: string, method: string | undefined): Promise<Response> | undefined {
  if (method !== 'GET' || performance.now() > EARLY_MS) return undefined;
  const key = (account ?? '') + path;
  const answer = early?.get(key);
  early?.delete(key);
  return answer;
}

/** No answer came. It has no status. */
export class Unanswered extends APIError {
  constructor(message: string, code: 'OFFLINE' | 'LOST' | 'NOT_SENT') {
    super(message, { status: 0, code });
  }
}

/** Somebody who wanted to change something must know whether it was sent. */
export function unanswered(method: string | undefined, sent: boolean): Unanswered {
  if (method === 'GET') return new Unanswered('No connection to the service.', 'OFFLINE');
  return sent
    ? new Unanswered(
        'The service did not respond. Check whether your change was made before you try again.',
        'LOST',
      )
    : new Unanswered('Not sent: no connection. Nothing was changed.', 'NOT_SENT');
}

let renewing: Promise<void> | undefined;
let onEnd: (() => void) | undefined;

/** What to do when a request finds that the session has ended. */
export function whenSessionEnds(act: (() => void) | undefined): void {
  onEnd = act;
}

const hasEnded = (error: unknown): boolean =>
  // Not found: the account of the session.
  error instanceof errors.AuthenticationError || error instanceof errors.NotFoundError;

/** Renews the session, once for all requests that need it. */
export function renewSession(): Promise<void> {
  renewing ??= api.auth
    .refresh()
    .then(noteRenewal, (error: unknown) => {
      if (hasEnded(error)) onEnd?.();
      throw error;
    })
    .finally(() => {
      renewing = undefined;
    });
  return renewing;
}

/** These start and renew sessions, so their 401 is not about an expired token. */
const SESSION_PATH = /^\/api\/auth\/(code|session|refresh)$/;

/** The response. If the token has expired, the session is renewed first, as it may live on. */
async function send(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await answer(input, init);
  if (response.status !== 401 || SESSION_PATH.test(String(input))) return response;
  try {
    await renewSession();
  } catch (error) {
    if (hasEnded(error)) return response;
    throw error;
  }
  // Nothing was done for the first request, so whatever it was, it can be sent again.
  return answer(input, init);
}

/** The response, with what a person should read if there is none. */
async function answer(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const isOnline = navigator.onLine;
  // The SDK gives its headers as a plain object.
  const headers = { ...init.headers, ...(account ? { 'X-Service-Account': account } : {}) };
  let response: Response;
  try {
    response = await (takeEarly(String(input), init.method) ?? fetch(input, { ...init, headers }));
  } catch (error) {
    // The caller does not want the answer any more.
    if (init.signal?.aborted) throw error;
    throw unanswered(init.method, isOnline);
  }
  const { ok, status, headers: about } = response;
  if (ok || about.get('Content-Type')?.includes('json')) return response;
  // Something between the page and the service answered.
  const requestId = about.get('X-Request-Id');
  const next =
    (init.method ?? 'GET') === 'GET'
      ? 'Try again in a moment.'
      : 'Check whether your change was made before you try again.';
  throw new APIError(`The service did not return a valid response. ${next}`, { status, requestId });
}

/** TanStack Query repeats what it reads, and nothing that a person did is repeated. */
export const api = new Rota({
  baseUrl: '',
  maxRetries: 0,
  timeoutMs: Number.POSITIVE_INFINITY,
  fetch: send,
});

/** The same, for what a person decides about: its numbers keep every digit. */
export const exactApi = api.withOptions({
  json: { parse: parseExact, stringify: stringifyExact },
});

/** The message about one field of a request, if the service named it. */
export const fieldProblem = (error: unknown, name: string): string | undefined =>
  error instanceof errors.ValidationError
    ? error.fields.find((problem) => problem.field === name)?.message
    : undefined;

/** A key that makes repeating a POST safe. Make one per action of a person, not per attempt. */
export const newIdempotencyKey = (): string => crypto.randomUUID();
