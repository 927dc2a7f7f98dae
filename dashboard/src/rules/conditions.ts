/** The conditions of a rule: what a form starts with, what people choose, and what is sent. */
import type { Condition } from '@rota/sdk';
import {
  ExactNumber,
  type Json,
  type JsonObject,
  parseExact,
  stringifyExact,
  toNumber,
} from '../api/exact';
import { isNumber, isObject } from '../review/schema';
import { strings } from './strings';

export type Choice = keyof typeof strings.choices;

export interface Row {
  name: string;
  choice: Choice;
  /** Whether values are typed as they are, and not as JSON. */
  isText: boolean;
  choices: Choice[];
  exact: string;
  oneOf: string;
  least: string;
  most: string;
}

const MOST_VALUES = 100;

const typeOf = (schema: Json | undefined): Json | undefined =>
  isObject(schema) ? schema.type : undefined;

function rowOf(
  name: string,
  schema: Json | undefined,
  given: Json | undefined,
  choice: Choice,
): Row {
  const type = typeOf(schema);
  const isText = given === undefined ? type === 'string' : typeof given === 'string';
  const isNumeric = isNumber(given) || type === 'number' || type === 'integer';
  const text = given === undefined ? '' : isText ? String(given) : stringifyExact(given);
  const number = isNumber(given) ? text : '';
  return {
    name,
    choice,
    isText,
    choices: ['exact', 'oneOf', ...(isNumeric ? (['range'] as const) : []), 'any', 'absent'],
    exact: text,
    // A text with several lines cannot be one of several lines.
    oneOf: text.includes('\n') ? '' : text,
    least: number,
    most: number,
  };
}

/**
 * A row for each argument of a tool. With a call, the rule covers calls with exactly its arguments
 * until something else is chosen. Without one, required arguments can have any value.
 */
export function rowsOf(schema: Json | undefined, call?: JsonObject): Row[] {
  const properties =
    isObject(schema) && isObject(schema.properties) ? schema.properties : ({} as JsonObject);
  const required = isObject(schema) && Array.isArray(schema.required) ? schema.required : [];
  const names = [...new Set([...Object.keys(call ?? {}), ...Object.keys(properties)])];
  return names.map((name) => {
    const given = call && Object.hasOwn(call, name) ? call[name] : undefined;
    const choice = call
      ? given === undefined
        ? 'absent'
        : 'exact'
      : required.includes(name)
        ? 'any'
        : 'absent';
    return rowOf(
      name,
      Object.hasOwn(properties, name) ? properties[name] : undefined,
      given,
      choice,
    );
  });
}

/** The value that somebody typed. Undefined if it is not JSON. */
function typedValue(text: string, isText: boolean): Json | undefined {
  if (isText) return text;
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

type Sent = { condition: Record<string, Json> | null } | { problem: string };

/** What one row sends. Null: the argument is not named. */
export function conditionOf({ choice, isText, exact, oneOf, least, most }: Row): Sent {
  if (choice === 'absent') return { condition: null };
  if (choice === 'any') return { condition: { any: true } };
  if (choice === 'range') {
    const [min, max] = [least, most].map((text) =>
      text.trim() ? toNumber(text.trim()) : undefined,
    );
    const wrong = min === null || max === null || (min === undefined && max === undefined);
    if (wrong || (min !== undefined && max !== undefined && size(min) > size(max))) {
      return { problem: strings.wrongRange };
    }
    return {
      condition: { ...(min !== undefined && { min }), ...(max !== undefined && { max }) },
    };
  }
  if (choice === 'exact') {
    const value = typedValue(exact, isText);
    return value === undefined ? { problem: strings.wrongValue } : { condition: { const: value } };
  }
  const lines = oneOf.split('\n').filter((line) => line.trim());
  const values = lines.map((line) => typedValue(line, isText));
  if (!lines.length || lines.length > MOST_VALUES) return { problem: strings.noValues };
  return values.some((value) => value === undefined)
    ? { problem: strings.wrongValue }
    : { condition: { enum: values as Json[] } };
}

const size = (value: number | ExactNumber | null): number =>
  Number(value instanceof ExactNumber ? value.source : value);

/** What all rows send. Null if one of them is not valid. */
export function conditionsOf(rows: Row[]): Record<string, Condition> | null {
  const found: [string, Condition][] = [];
  for (const row of rows) {
    const sent = conditionOf(row);
    if ('problem' in sent) return null;
    if (sent.condition) found.push([row.name, sent.condition as Condition]);
  }
  return Object.fromEntries(found);
}

/** "exactly “one”", "from 1 up to 50": a condition in words, with the values as JSON. */
export function wordsOf(condition: Record<string, unknown>): string {
  const shown = (value: unknown) => stringifyExact(value);
  if ('const' in condition) return `${strings.exactly} ${shown(condition.const)}`;
  if (Array.isArray(condition.enum)) {
    return `${strings.oneOf} ${condition.enum.map(shown).join(', ')}`;
  }
  if ('any' in condition) return strings.anyValue;
  const { min, max } = condition;
  return [
    min !== undefined && `${strings.from} ${shown(min)}`,
    max !== undefined && `${strings.upTo} ${shown(max)}`,
  ]
    .filter(Boolean)
    .join(' ');
}
