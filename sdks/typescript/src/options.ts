/** What a client and a request can be given. */
import { RotaError } from './errors.ts';

/** How JSON is read and written. */
export interface Json {
  parse(text: string): unknown;
  stringify(value: unknown): string;
}

export interface RotaOptions {
  /**
   * An API key or a session token. Default: the environment variable ROTA_API_KEY. In a browser that
   * is signed in by cookie, pass nothing.
   */
  apiKey?: string | undefined;
  /** The URL of the service. Default: the environment variable ROTA_BASE_URL. */
  baseUrl?: string | undefined;
  /** The account to act for: `personal`, `company` or an account ID. */
  account?: string | undefined;
  /** How long one attempt may take. Default: 60,000. */
  timeoutMs?: number | undefined;
  /** How often a request is sent again. Default: 2. */
  maxRetries?: number | undefined;
  /** Pins the date of the API contract. */
  apiVersion?: string | undefined;
  /** Sends the requests. Default: the global `fetch`. Errors of the SDK that it throws are kept. */
  fetch?: typeof fetch | undefined;
  /** Default: the global `JSON`, which rounds numbers that do not fit into a double. */
  json?: Json | undefined;
}

export interface RequestOptions {
  /** Ends the request. */
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
}

export interface KeyedRequestOptions extends RequestOptions {
  /** Makes the request safe to repeat. Default: a new key for each call. */
  idempotencyKey?: string | undefined;
}

/** The options of a client with every default filled in. */
export interface Settings {
  apiKey: string | undefined;
  baseUrl: string;
  account: string | undefined;
  timeoutMs: number;
  maxRetries: number;
  apiVersion: string | undefined;
  fetch: typeof fetch | undefined;
  json: Json;
}

// Node, Bun and Deno have it, browsers do not.
const environment = (globalThis as { process?: { env?: Record<string, string | undefined> } })
  .process?.env;

export function settingsOf(options: RotaOptions): Settings {
  const baseUrl = options.baseUrl ?? environment?.ROTA_BASE_URL;
  if (baseUrl === undefined) {
    throw new RotaError('The URL of the service is missing. Pass baseUrl, or set ROTA_BASE_URL.');
  }
  // A page can use paths of its own server.
  if (!/^https?:\/\//.test(baseUrl) && !('location' in globalThis && /^(\/|$)/.test(baseUrl))) {
    throw new TypeError(`The URL of the service must start with https:// or http://: ${baseUrl}`);
  }
  const { maxRetries = 2 } = options;
  if (!(maxRetries >= 0)) throw new TypeError('maxRetries cannot be negative.');
  const apiKey = options.apiKey ?? environment?.ROTA_API_KEY;
  // Checked here, because the error of `fetch` would contain the key.
  if (apiKey && !/^[!-~]+$/.test(apiKey)) {
    throw new TypeError('The API key contains a space or a line break. Copy it again.');
  }
  return {
    apiKey,
    baseUrl: baseUrl.replace(/\/+$/, ''),
    account: options.account,
    timeoutMs: options.timeoutMs ?? 60_000,
    maxRetries,
    apiVersion: options.apiVersion,
    fetch: options.fetch,
    json: options.json ?? JSON,
  };
}
