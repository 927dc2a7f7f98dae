/** What a request consists of, made from the arguments of a method. */
import { type Operation, partsOf } from './operation.ts';
import { headerValue, type Json } from './options.ts';

export type Query = Readonly<Record<string, unknown>>;

/** What a method gives to an operation. */
export interface Parts {
  path?: Readonly<Record<string, string>>;
  query?: Query | undefined;
  body?: unknown;
  idempotencyKey?: string | undefined;
  /** Whether it has the same effect if it is sent again after the response was lost. Default: true. */
  repeatable?: boolean;
  /** The status if it was done before. Default: 404 for DELETE. */
  doneStatus?: number;
}

/** One call of an operation. Its attempts all send the same. */
export interface ApiRequest {
  method: string;
  /** The path with its query. */
  target: string;
  headers: Record<string, string>;
  body: string | undefined;
  keyed: boolean;
  repeatable: boolean;
  doneStatus: number | undefined;
}

/** 128 random bits. Pages without TLS have no `crypto.randomUUID`. */
const newKey = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

export function requestOf(operation: Operation<unknown>, parts: Parts, json: Json): ApiRequest {
  const { method, path, keyed } = partsOf(operation);
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (keyed) {
    const key = parts.idempotencyKey ?? newKey();
    headers['Idempotency-Key'] = headerValue('idempotencyKey', key);
  }
  let body: string | undefined;
  if (parts.body !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = json.stringify(parts.body);
  }
  return {
    method,
    target: filled(path, parts.path ?? {}) + queryOf(parts.query ?? {}),
    headers,
    body,
    keyed,
    repeatable: parts.repeatable ?? true,
    doneStatus: parts.doneStatus ?? (method === 'DELETE' ? 404 : undefined),
  };
}

function filled(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = values[name] ?? '';
    // A URL would take dots as a way to another path.
    if (/^\.{0,2}$/.test(value)) throw new TypeError(`The ${name} is empty or not valid.`);
    return encodeURIComponent(value);
  });
}

/** Several values are separated by commas. */
function queryOf(query: Query): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

/** The ID of a resource that is given itself or by its ID. */
export const idOf = (resource: string | { id: string }): string =>
  typeof resource === 'string' ? resource : resource.id;

/** The parameters of a list. A filter with several values also takes one by itself. */
export type Filters<Data extends { query?: unknown }> = {
  [Name in keyof NonNullable<Data['query']>]?:
    | NonNullable<Data['query']>[Name]
    | (NonNullable<NonNullable<Data['query']>[Name]> extends Array<infer Value> ? Value : never)
    | undefined;
};
