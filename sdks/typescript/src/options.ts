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
  /** The URL of the service. Default: the environment variable ROTA_BASE_URL or ROTA_URL. */
  baseUrl?: string | undefined;
  /**
   * The account to act for: `personal`, `company` or an account ID. Default: the environment variable
   * ROTA_ACCOUNT, if `apiKey` comes from the environment too.
   */
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

/** Other options of a client: `undefined` keeps what it has, and null clears it. */
export type OtherOptions = { [Name in keyof RotaOptions]: RotaOptions[Name] | null };

/** The options of a client with every default filled in. */
export interface Settings {
  apiKey: string | undefined;
  baseUrl: string;
  account: string | null | undefined;
  timeoutMs: number;
  maxRetries: number;
  apiVersion: string | null | undefined;
  fetch: typeof fetch | null | undefined;
  json: Json;
}

// Node, Bun and Deno have it, browsers do not.
const environment = (globalThis as { process?: { env?: Record<string, string | undefined> } })
  .process?.env;

/**
 * Refuses what cannot be sent in a header: `fetch` would fail as if the connection were broken. The
 * message does not repeat the value.
 */
export function headerValue(name: string, value: string): string {
  if (!/^[!-~]([ -~]*[!-~])?$/.test(value)) {
    throw new TypeError(`${name} is empty or has an invalid character.`);
  }
  return value;
}

export function settingsOf(options: OtherOptions): Settings {
  const baseUrl =
    options.baseUrl ?? (environment?.ROTA_BASE_URL || environment?.ROTA_URL || undefined);
  if (baseUrl === undefined) {
    throw new RotaError('baseUrl is missing. Pass baseUrl, or set ROTA_BASE_URL.');
  }
  // A page can use paths of its own server.
  const isOwn = 'location' in globalThis && /^(\/|$)/.test(baseUrl);
  if (
    !(isOwn || (/^https?:\/\//.test(baseUrl) && URL.canParse(baseUrl))) ||
    /[?#]|^(https?:)?\/\/+[^/\\]*@/.test(baseUrl)
  ) {
    // The message does not repeat the URL, which may contain a password.
    throw new TypeError(
      'baseUrl must start with https:// or http:// and have no password, query or fragment.',
    );
  }
  const maxRetries = options.maxRetries ?? 2;
  if (!(maxRetries >= 0)) throw new TypeError('maxRetries cannot be negative.');
  const settings: Settings = {
    // An empty key is none, also if the environment has one.
    apiKey: options.apiKey === null ? '' : (options.apiKey ?? environment?.ROTA_API_KEY),
    baseUrl: baseUrl.replace(/\/+$/, ''),
    account:
      options.account === undefined && options.apiKey === undefined
        ? environment?.ROTA_ACCOUNT
        : options.account,
    timeoutMs: options.timeoutMs ?? 60_000,
    maxRetries,
    apiVersion: options.apiVersion,
    fetch: options.fetch,
    json: options.json ?? JSON,
  };
  for (const name of ['apiKey', 'account', 'apiVersion'] as const) {
    if (settings[name]) headerValue(name, settings[name]);
  }
  return settings;
}
