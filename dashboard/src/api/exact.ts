/**
 * JSON whose numbers keep every digit. `JSON.parse` rounds what does not fit into a double, but a
 * person must see, and send back, exactly the number that a decision is about.
 */

/** A number that JavaScript would write in another way than the API did. */
export class ExactNumber {
  constructor(readonly source: string) {}
}

export type Json =
  | null
  | boolean
  | number
  | string
  | ExactNumber
  | Json[]
  | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const TOKEN = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

const survives = (source: string): boolean => JSON.stringify(Number(source)) === source;

/** The number that the text is, or null if it is not one in JSON. */
export function toNumber(text: string): number | ExactNumber | null {
  if (!NUMBER.test(text)) return null;
  return survives(text) ? Number(text) : new ExactNumber(text);
}

// What stands in for a number while the text is parsed or made. It is random, so that a text of
// others cannot contain it.
const mark = () => `exact-${crypto.randomUUID()}-`;

export function parseExact<T = Json>(text: string): T {
  const key = mark();
  const marked = text.replace(TOKEN, (token) =>
    token.startsWith('"') || survives(token) || !NUMBER.test(token) ? token : `"${key}${token}"`,
  );
  if (marked === text) return JSON.parse(text) as T;
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === 'string' && value.startsWith(key)
      ? new ExactNumber(value.slice(key.length))
      : value,
  ) as T;
}

export function stringifyExact(value: unknown, indent?: number): string {
  const key = mark();
  const marked = JSON.stringify(
    value,
    (_, each: unknown) => (each instanceof ExactNumber ? `${key}${each.source}` : each),
    indent,
  );
  return marked.replaceAll(new RegExp(`"${key}([^"]*)"`, 'g'), '$1');
}

export const sameJson = (a: Json | undefined, b: Json | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && stringifyExact(a) === stringifyExact(b));
