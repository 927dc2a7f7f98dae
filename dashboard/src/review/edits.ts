/** What a person changed in the arguments, and the arguments that follow from it. */
import {
  type ExactNumber,
  type Json,
  type JsonObject,
  parseExact,
  sameJson,
  stringifyExact,
  toNumber,
} from '../api/exact';
import { hasHidden, marks, visible } from '../ui/SafeText';
import { patternOf } from './pattern';
import { type Field, flat, isNumber, isObject } from './schema';
import { strings } from './strings';

/** A text as it was typed, a value that was chosen (undefined is not sent), or rows left out. */
export type Edit = { text: string } | { value: Json | undefined } | { leftOut: number[] };

/** By the field's id. */
export type Edits = Readonly<Record<string, Edit>>;

export type Resolved = { value: Json | undefined } | { problem: string };

/** JSON as people read it. Characters that are not visible are written as escapes. */
export function prettyJson(value: Json): string {
  const text = stringifyExact(value, 2);
  if (!hasHidden(text)) return text;
  return marks(text)
    .map((part) => (part.hidden ? escaped(Number.parseInt(part.text.slice(2), 16)) : part.text))
    .join('');
}

const escaped = (point: number): string =>
  Array.from(
    { length: String.fromCodePoint(point).length },
    (_, at) => `\\u${String.fromCodePoint(point).charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');

const scalarText = (value: Json): string =>
  typeof value === 'string' ? value : stringifyExact(value);

/** What the control of a field shows before anyone types. */
export function proposedText(field: Field): string {
  const { kind, proposed } = field;
  if (proposed === undefined) return '';
  if (kind.is === 'json') return prettyJson(proposed);
  if (proposed === null) return '';
  if (kind.is === 'list' && Array.isArray(proposed)) return proposed.map(scalarText).join('\n');
  return scalarText(proposed);
}

/** The value of a field with its edit, or what is wrong with it. */
export function resolve(field: Field, edit: Edit | undefined): Resolved {
  if (!edit) return { value: field.proposed };
  if ('value' in edit) return { value: edit.value };
  if ('leftOut' in edit) return withoutRows(field, edit.leftOut);
  const { text } = edit;
  const { kind } = field;
  if (kind.is === 'text') return fromText(kind, text);
  if (kind.is === 'number') return fromNumber(kind, text.trim());
  if (kind.is === 'list') return fromLines(kind, text);
  return fromJson(text, field.required);
}

export function rowsWithout(field: Field, leftOut: number[]): Json[] {
  const rows = Array.isArray(field.proposed) ? field.proposed : [];
  return rows.filter((_, at) => !leftOut.includes(at));
}

function withoutRows(field: Field, leftOut: number[]): Resolved {
  const kept = rowsWithout(field, leftOut);
  const least = field.kind.is === 'table' ? (field.kind.minItems ?? 0) : 0;
  return kept.length < least ? { problem: strings.problems.atLeast(least) } : { value: kept };
}

function fromText(kind: Extract<Field['kind'], { is: 'text' }>, text: string): Resolved {
  const length = Array.from(text).length;
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, format, pattern } = kind;
  if (length < minLength) return { problem: strings.problems.tooShort(minLength) };
  if (length > maxLength) return { problem: strings.problems.tooLong(maxLength, length) };
  if (format === 'date' && !isDate(text)) return { problem: strings.problems.date };
  if (format === 'date-time' && !isTime(text)) return { problem: strings.problems.time };
  if (format === 'email' && !/^[^\s@]+@[^\s@]+$/.test(text)) {
    return { problem: strings.problems.email };
  }
  if (format === 'uri' && !URL.canParse(text)) return { problem: strings.problems.uri };
  const rule = pattern ? patternOf(pattern) : null;
  if (pattern && rule?.fits(text) === false) {
    return { problem: strings.problems.pattern(rule.example, visible(pattern)) };
  }
  return { value: text };
}

export const isDate = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(text) &&
  !Number.isNaN(Date.parse(text)) &&
  new Date(text).toISOString().startsWith(text);

export const isTime = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/i.test(text) &&
  !Number.isNaN(Date.parse(text));

function fromNumber(kind: Extract<Field['kind'], { is: 'number' }>, text: string): Resolved {
  const value = toNumber(text);
  if (value === null || (kind.integer && !/^-?\d+$/.test(text))) {
    return { problem: kind.integer ? strings.problems.integer : strings.problems.number };
  }
  const { minimum, maximum, above, below } = kind;
  if (isNumber(minimum) && less(value, minimum)) {
    return { problem: strings.problems.minimum(scalarText(minimum)) };
  }
  if (isNumber(maximum) && less(maximum, value)) {
    return { problem: strings.problems.maximum(scalarText(maximum)) };
  }
  if (isNumber(above) && !less(above, value)) {
    return { problem: strings.problems.above(scalarText(above)) };
  }
  if (isNumber(below) && !less(value, below)) {
    return { problem: strings.problems.below(scalarText(below)) };
  }
  return { value };
}

function less(a: number | ExactNumber, b: number | ExactNumber): boolean {
  const [x, y] = [scalarText(a), scalarText(b)];
  const whole = /^-?\d+$/;
  return whole.test(x) && whole.test(y) ? BigInt(x) < BigInt(y) : Number(x) < Number(y);
}

function fromLines(kind: Extract<Field['kind'], { is: 'list' }>, text: string): Resolved {
  const lines = text.split('\n').filter((line) => line !== '');
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY, of } = kind;
  if (lines.length < minItems) return { problem: strings.problems.atLeast(minItems) };
  if (lines.length > maxItems) return { problem: strings.problems.atMost(maxItems) };
  if (of === 'text') return { value: lines };
  const numbers: Json[] = [];
  for (const line of lines) {
    const found = fromNumber({ is: 'number', integer: of === 'integer' }, line.trim());
    if ('problem' in found) return { problem: strings.problems.inLine(line, found.problem) };
    numbers.push(found.value ?? null);
  }
  return { value: numbers };
}

function fromJson(text: string, required: boolean): Resolved {
  if (!text.trim()) return required ? { problem: strings.problems.required } : { value: undefined };
  try {
    return { value: parseExact(text) };
  } catch (error) {
    return { problem: strings.problems.json(error instanceof Error ? error.message : '') };
  }
}

/** The edits with one more. An edit that changes nothing is not kept. */
export function withEdit(edits: Edits, field: Field, edit: Edit | undefined): Edits {
  const rest = Object.fromEntries(Object.entries(edits).filter(([id]) => id !== field.id));
  if (!edit || ('leftOut' in edit && edit.leftOut.length === 0)) return rest;
  const resolved = resolve(field, edit);
  const typed = 'text' in edit && edit.text !== proposedText(field);
  if ('value' in resolved && sameJson(resolved.value, field.proposed) && !typed) return rest;
  return { ...rest, [field.id]: edit };
}

/** The fields that differ from what was proposed. */
export const editedFields = (fields: Field[], edits: Edits): Field[] =>
  flat(fields).filter((field) => {
    const edit = edits[field.id];
    if (!edit) return false;
    const resolved = resolve(field, edit);
    return 'problem' in resolved || !sameJson(resolved.value, field.proposed);
  });

export const problemsOf = (fields: Field[], edits: Edits): Field[] =>
  flat(fields).filter((field) => 'problem' in resolve(field, edits[field.id]));

/** The arguments with all edits. Values without an edit stay exactly as they were proposed. */
export function edited(proposed: JsonObject, fields: Field[], edits: Edits): JsonObject {
  let result = proposed;
  for (const field of editedFields(fields, edits)) {
    const resolved = resolve(field, edits[field.id]);
    if ('value' in resolved) result = put(result, field.path, resolved.value);
  }
  return result;
}

function put(object: JsonObject, path: string[], value: Json | undefined): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined) return object;
  const entries = Object.entries(object);
  const at = entries.findIndex(([name]) => name === key);
  const found = at >= 0 ? entries[at]?.[1] : undefined;
  const next = rest.length ? put(isObject(found) ? found : {}, rest, value) : value;
  if (next === undefined) return Object.fromEntries(entries.filter(([name]) => name !== key));
  if (at >= 0) entries[at] = [key, next];
  else entries.push([key, next]);
  return Object.fromEntries(entries);
}

/** The edits that still make sense for a new proposal: those whose field still exists. */
export function rebase(edits: Edits, before: Field[], after: Field[]): Edits {
  let kept: Edits = {};
  for (const field of flat(after)) {
    const edit = edits[field.id];
    const old = flat(before).find((each) => each.id === field.id);
    if (!edit || !old || old.kind.is !== field.kind.is) continue;
    kept = withEdit(kept, field, 'leftOut' in edit ? moved(edit.leftOut, old, field) : edit);
  }
  return kept;
}

/** The same rows in a new list, found by what they contain. */
function moved(leftOut: number[], before: Field, after: Field): Edit {
  const old = Array.isArray(before.proposed) ? before.proposed : [];
  const rows = Array.isArray(after.proposed) ? after.proposed : [];
  const found: number[] = [];
  for (const at of leftOut) {
    const next = rows.findIndex((row, index) => !found.includes(index) && sameJson(row, old[at]));
    if (next >= 0) found.push(next);
  }
  return { leftOut: found };
}
