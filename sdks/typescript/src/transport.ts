/** Sends requests, and sends them again where that helps. */
import {
  APIConnectionError,
  APIError,
  APITimeoutError,
  AuthenticationError,
  apiError,
  ConflictError,
  RotaError,
  UnreadableResponseError,
} from './errors.ts';
import type { Operation } from './operation.ts';
import type { Json, RequestOptions, Settings } from './options.ts';
import { type ApiRequest, type Parts, requestOf } from './request.ts';
import { backoffMs, delayMs, MOST_GROWTH, pause } from './retries.ts';
import { Deadline } from './timeouts.ts';
import { VERSION } from './version.ts';

/** Connections that were never made, as Node, Bun and Deno name them. */
const UNSENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ConnectionRefused',
]);

/** A stream that is silent for longer is dead: that of events sends something every 15 s. */
const SILENCE_MS = 40_000;

const isBrowser = 'document' in globalThis || 'importScripts' in globalThis;

export class Transport {
  constructor(readonly settings: Settings) {}

  async call<R>(operation: Operation<R>, parts: Parts, options: RequestOptions = {}): Promise<R> {
    const { json } = this.settings;
    return this.send(requestOf(operation, parts, json), (text) => json.parse(text) as R, options);
  }

  /** What `read` makes of the text of the response. Throws if every attempt fails. */
  async send<R>(
    request: ApiRequest,
    read: (text: string) => R,
    options: RequestOptions = {},
  ): Promise<R> {
    const { signal, maxRetries = this.settings.maxRetries } = options;
    const timeoutMs = options.timeoutMs ?? this.settings.timeoutMs;
    let patience = Number.NaN;
    let waits = 0;
    let isLost = false;
    for (let attempt = 0; ; ) {
      try {
        return await this.#attempt(request, read, timeoutMs, signal);
      } catch (error) {
        const { status = 0, code } = error instanceof APIError ? error : {};
        // An earlier attempt did it, and its response was lost.
        if (isLost && code && status === request.doneStatus) return undefined as R;
        const isBusy = error instanceof ConflictError && error.isInProgress;
        if (error instanceof RotaError) {
          isLost ||= status >= 500 || isBusy || error.wasSent;
          error.wasSent = isLost;
          error.idempotencyKey = request.headers['Idempotency-Key'] ?? null;
        }
        // An earlier attempt was cut off and still runs, or that of an earlier process with the
        // same key. Its response is stored at its end.
        if (isBusy && request.keyed && maxRetries > 0) {
          const now = performance.now();
          patience ||= now + timeoutMs;
          if (now < patience) {
            const waitMs = backoffMs(Math.min(waits, MOST_GROWTH));
            await pause(Math.min(waitMs, patience - now), signal);
            waits += 1;
            continue;
          }
        }
        const waitMs = delayMs(error, attempt, request.repeatable);
        if (waitMs === null || attempt >= maxRetries) throw error;
        await pause(waitMs, signal);
        attempt += 1;
      }
    }
  }

  async #attempt<R>(
    request: ApiRequest,
    read: (text: string) => R,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<R> {
    const deadline = new Deadline(timeoutMs, signal);
    try {
      const response = await this.fetch(request, request.headers, deadline);
      const text = await response.text();
      if (!response.ok) throw this.errorOf(response, text);
      return readOf(response, text, read);
    } catch (error) {
      throw this.failure(error, deadline, signal);
    } finally {
      deadline.clear();
    }
  }

  /** One response, as it is. */
  fetch(
    request: ApiRequest,
    headers: Record<string, string>,
    deadline: Deadline,
  ): Promise<Response> {
    const { settings } = this;
    const send = settings.fetch ?? fetch;
    return send(settings.baseUrl + request.target, {
      method: request.method,
      headers: { ...this.#ownHeaders(), ...headers },
      ...(request.body === undefined ? {} : { body: request.body }),
      // A request that is redirected could become another one.
      redirect: 'manual',
      signal: deadline.signal,
    });
  }

  /**
   * The body of one response as it arrives, without a limit for all of it. It is not sent again. The
   * first piece is empty: the response has begun.
   */
  async *stream(
    request: ApiRequest,
    accept: string,
    headers: Record<string, string> = {},
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const deadline = new Deadline(Math.min(this.settings.timeoutMs, SILENCE_MS), signal);
    // A network that is gone does not end a stream by itself.
    globalThis.addEventListener?.('offline', deadline.cut);
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const sent = { ...request.headers, Accept: accept, ...headers };
      const response = await this.fetch(request, sent, deadline);
      if (!response.ok) throw this.errorOf(response, await response.text());
      const kind = response.headers.get('Content-Type') ?? '';
      if (!response.body || !kind.startsWith(accept)) {
        throw new UnreadableResponseError('The response is not from Rota. Check baseUrl.');
      }
      reader = response.body.getReader();
      yield new Uint8Array();
      for (;;) {
        deadline.restart(SILENCE_MS);
        const { value, done } = await reader.read();
        // The caller takes the time that it needs.
        deadline.restart(Number.POSITIVE_INFINITY);
        if (done) return;
        yield value;
      }
    } catch (error) {
      throw this.failure(error, deadline, signal);
    } finally {
      deadline.clear();
      globalThis.removeEventListener?.('offline', deadline.cut);
      deadline.cut();
      reader?.cancel().catch(() => undefined);
    }
  }

  #ownHeaders(): Record<string, string> {
    const { apiKey, account, apiVersion } = this.settings;
    return {
      // Browsers have their own, and ask other servers first whether this one may be set.
      ...(isBrowser ? {} : { 'User-Agent': `rota-sdk/${VERSION} ${runtime()}` }),
      ...(apiKey ? { Authorization: `Bearer ${apiKey}` } : {}),
      ...(account ? { 'X-Service-Account': account } : {}),
      ...(apiVersion ? { 'Api-Version': apiVersion } : {}),
    };
  }

  /** The error of a response whose body was read. */
  errorOf(response: Response, text: string): APIError {
    const error = errorOf(response, text, this.settings.json);
    // The service's advice is about a header. A browser can also have a cookie.
    if (error.status !== 401 || this.settings.apiKey || isBrowser) return error;
    return new AuthenticationError(
      'The API key is missing. Pass apiKey, or set ROTA_API_KEY.',
      error,
    );
  }

  /** The error of the SDK for what `fetch` or a stream threw. */
  failure(error: unknown, deadline: Deadline, signal?: AbortSignal): unknown {
    if (error instanceof RotaError) return error;
    if (signal?.aborted) return signal.reason;
    const { baseUrl } = this.settings;
    const service = baseUrl || 'the service';
    if (deadline.hasPassed) {
      return new APITimeoutError(`No response from ${service} in time.`, { cause: error });
    }
    const { message, cause } = error as {
      message?: string;
      cause?: { code?: string; message?: string };
    };
    const wasSent = !UNSENT.has(cause?.code ?? (error as { code?: string }).code ?? '');
    const reason = cause?.message || cause?.code || message || String(error);
    return new APIConnectionError(`The connection to ${service} failed: ${reason}`, {
      cause: error,
      wasSent,
    });
  }
}

function readOf<R>({ headers }: Response, text: string, read: (text: string) => R): R {
  try {
    return read(text);
  } catch (cause) {
    const kind = headers.get('Content-Type');
    if (kind && !kind.includes('json')) {
      throw new UnreadableResponseError('The response is not from Rota. Check baseUrl.', { cause });
    }
    // Browsers take a response that was cut off in its headers for a complete one.
    throw new APIConnectionError('The response was cut off.', { cause });
  }
}

function errorOf(response: Response, text: string, json: Json): APIError {
  const { status, headers } = response;
  const about = {
    status,
    requestId: headers.get('X-Request-Id'),
    retryAfterS: retryAfterS(response),
  };
  try {
    const { error } = json.parse(text) as { error: { message?: unknown } };
    if (error && typeof error === 'object') return apiError(error, about);
  } catch {
    // Something in between answered.
  }
  const message =
    status < 400
      ? `The server redirects to ${headers.get('Location') ?? 'another URL'}. Check baseUrl.`
      : `The response is not from Rota: ${text.slice(0, 200)}`;
  return apiError({ message }, about);
}

function retryAfterS({ status, headers }: Response): number | null {
  const names = status === 429 ? ['Retry-After', 'RateLimit-Reset'] : ['Retry-After'];
  for (const name of names) {
    const value = headers.get(name)?.trim();
    if (!value) continue;
    const found = /GMT$/.test(value) ? (Date.parse(value) - Date.now()) / 1_000 : Number(value);
    if (Number.isFinite(found)) return Math.max(0, found);
  }
  return null;
}

/** Deno, Bun and Node since 21 name themselves as a browser does. */
const runtime = (): string => globalThis.navigator?.userAgent ?? 'Node.js';
