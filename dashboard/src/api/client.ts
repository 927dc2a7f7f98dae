/** The generated client, set up for a browser that is signed in by cookie. */
import { client } from '@rota/sdk';
import type {} from '../early';

export interface FieldProblem {
  field: string;
  message: string;
}

/** An error of the API: its message, what it is about, and the request's id for support. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string | undefined,
    readonly details: unknown,
    readonly requestId: string | null,
    /** How long to wait before the next request, if the API says so. */
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** The message of one field of a request, if the API named it. */
  field(name: string): string | undefined {
    return this.fields.find((problem) => problem.field === name)?.message;
  }

  get fields(): FieldProblem[] {
    return Array.isArray(this.details) ? (this.details as FieldProblem[]) : [];
  }
}

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

export const accountHeaders = (): Record<string, string> =>
  account ? { 'X-Service-Account': account } : {};

const { early } = window;
/** After this time since the page was opened, early answers are too old. */
const EARLY_MS = 10_000;

/** The answer to this request if it was made before the dashboard was loaded. It is used once. */
function takeEarly(request: Request): Promise<Response> | undefined {
  if (request.method !== 'GET' || performance.now() > EARLY_MS) return undefined;
  const { pathname, search } = new URL(request.url);
  const key = `${account}${pathname}${search}`;
  const answer = early?.get(key);
  early?.delete(key);
  return answer;
}

client.setConfig({
  baseUrl: '',
  throwOnError: true,
  credentials: 'same-origin',
  fetch: (input) => takeEarly(input as Request) ?? fetch(input),
});

/** The requests that were made without a network, so that they cannot have reached anything. */
const offline = new WeakSet<Request>();

client.interceptors.request.use((request) => {
  if (account) request.headers.set('X-Service-Account', account);
  if (!navigator.onLine) offline.add(request);
  return request;
});

/** No answer came. Somebody who wanted to change something must know whether it was sent. */
export function unanswered(method: string, sent: boolean): ApiError {
  const error = (message: string, code: string) => new ApiError(message, 0, code, null, null);
  if (method === 'GET') return error('No connection to the service.', 'OFFLINE');
  return sent
    ? error('No answer from the service. Look whether it was done before you try again.', 'LOST')
    : error('Not sent: no connection. Nothing was changed.', 'NOT_SENT');
}

client.interceptors.error.use((error, response, request) => {
  const requestId = response?.headers.get('X-Request-Id') ?? null;
  const body = (error as { error?: Record<string, unknown> } | undefined)?.error;
  if (response && body && typeof body.message === 'string') {
    return new ApiError(
      body.message,
      response.status,
      typeof body.code === 'string' ? body.code : undefined,
      body.details,
      requestId,
      Number(response.headers.get('Retry-After')) || null,
    );
  }
  if (response) {
    return new ApiError(
      'The service could not answer.',
      response.status,
      undefined,
      null,
      requestId,
    );
  }
  return unanswered(request.method, !offline.has(request));
});

/** The body of a successful response. Errors are thrown as ApiError. */
export async function ok<T>(call: Promise<{ data: T }>): Promise<NonNullable<T>> {
  return (await call).data as NonNullable<T>;
}

/** A key that makes repeating a POST safe. Make one per action of a person, not per attempt. */
export const newIdempotencyKey = (): string => crypto.randomUUID();
