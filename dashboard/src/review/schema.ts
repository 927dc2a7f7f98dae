/** A form from a JSON Schema: which control each argument gets. Every proposed value gets one. */
import { ExactNumber, type Json, type JsonObject, sameJson } from '../api/exact';

export type TextFormat = 'date' | 'date-time' | 'email' | 'uri';

export type Kind =
  | { is: 'text'; format?: TextFormat; minLength?: number; maxLength?: number; pattern?: string }
  | { is: 'number'; integer: boolean; minimum?: Json; maximum?: Json; above?: Json; below?: Json }
  | { is: 'yesno' }
  | { is: 'choice'; options: (Json | undefined)[]; fixed: boolean }
  | { is: 'list'; of: 'text' | 'number' | 'integer'; minItems?: number; maxItems?: number }
  | { is: 'several'; options: string[]; minItems?: number; maxItems?: number }
  | {
      is: 'table';
      columns: { key: string; title?: string }[];
      minItems?: number;
      maxItems?: number;
    }
  | { is: 'group'; fields: Field[] }
  | { is: 'json' };

export interface Field {
  /** Where the value is in the arguments. */
  path: string[];
  /** The path as one text, unique within the item. */
  id: string;
  key: string;
  name: string;
  /** Whether `name` is a title that the tool server gave. */
  titled: boolean;
  description?: string;
  required: boolean;
  nullable: boolean;
  proposed: Json | undefined;
  kind: Kind;
}

type Schema = JsonObject;

const MAX_DEPTH = 4;
const MAX_FIELDS = 200;
const MAX_OPTIONS = 24;
const MAX_ROWS = 500;
const MAX_COLUMNS = 6;
const FORMATS: readonly string[] = ['date', 'date-time', 'email', 'uri'];

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof ExactNumber);

export const isNumber = (value: Json | undefined): value is number | ExactNumber =>
  typeof value === 'number' || value instanceof ExactNumber;

const isDigits = (value: number | ExactNumber): boolean =>
  value instanceof ExactNumber ? /^-?\d+$/.test(value.source) : Number.isInteger(value);

const own = (object: JsonObject, key: string): Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined;

const text = (value: Json | undefined): string | undefined =>
  typeof value === 'string' && value ? value : undefined;

const size = (value: Json | undefined): number | undefined =>
  typeof value === 'number' && value >= 0 ? value : undefined;

/** `payment_date` and `paymentDate` as "Payment date". */
export function readable(key: string): string {
  const words = key
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/[_.\-\s]+/g, ' ')
    .trim()
    .split(' ')
    .map((word) => (/^[A-Z][a-z]+$/.test(word) ? word.toLowerCase() : word))
    .join(' ');
  return words ? words.charAt(0).toUpperCase() + words.slice(1) : key;
}

/** The fields of an object of arguments: first what the schema names, then everything else. */
export function fieldsOf(schema: Json | null, value: Json | undefined): Field[] {
  const root = isObject(schema ?? undefined) ? (schema as Schema) : {};
  return objectFields(root, isObject(value) ? value : {}, [], root);
}

/** All fields that hold a value, without the groups around them. */
export const flat = (fields: Field[]): Field[] =>
  fields.flatMap((field) => (field.kind.is === 'group' ? flat(field.kind.fields) : [field]));

/** Whether nothing of the field would be sent. */
export const isAbsent = (field: Field): boolean => field.proposed === undefined && !field.required;

function objectFields(schema: Schema, value: JsonObject, path: string[], root: Schema): Field[] {
  const properties = own(schema, 'properties');
  const named = isObject(properties) ? properties : {};
  const required = own(schema, 'required');
  const needs = Array.isArray(required) ? required : [];
  // The list of required fields is in the order of the tool's author. The properties may not be.
  const first = needs.filter((key) => typeof key === 'string' && Object.hasOwn(named, key));
  const keys = [...new Set([...(first as string[]), ...Object.keys(named), ...Object.keys(value)])];
  return keys.map((key) =>
    field(own(named, key), own(value, key), [...path, key], needs.includes(key), root),
  );
}

function field(
  given: Json | undefined,
  proposed: Json | undefined,
  path: string[],
  required: boolean,
  root: Schema,
): Field {
  const { schema, nullable } = simple(given, root);
  const key = path.at(-1) ?? '';
  const title = text(own(schema, 'title')) ?? text(isObject(given) ? own(given, 'title') : '');
  const description =
    text(own(schema, 'description')) ?? text(isObject(given) ? own(given, 'description') : '');
  const kind = kindOf(schema, proposed, { path, root, nullable, required });
  return {
    path,
    id: JSON.stringify(path),
    key,
    name: title ?? readable(key),
    titled: title !== undefined && title !== readable(key) && title !== key,
    ...(description ? { description } : {}),
    required,
    nullable: nullable || (kind.is !== 'json' && proposed === null),
    proposed,
    kind,
  };
}

/** Follows references and takes "or null" apart. */
function simple(given: Json | undefined, root: Schema, hops = 0): SimpleSchema {
  let schema: Schema = isObject(given) ? given : {};
  if (hops > 8) return { schema: { oneOf: [] }, nullable: false };
  const reference = text(own(schema, '$ref'));
  if (reference) return simple(target(reference, root), root, hops + 1);
  const all = own(schema, 'allOf');
  if (Array.isArray(all) && all.length === 1) {
    const inner = simple(all[0], root, hops + 1);
    schema = { ...inner.schema, ...without(schema, 'allOf') };
  }
  for (const name of ['anyOf', 'oneOf']) {
    const options = own(schema, name);
    if (!Array.isArray(options)) continue;
    const others = options.filter((option) => !(isObject(option) && option.type === 'null'));
    if (others.length === 1 && others.length < options.length) {
      const inner = simple(others[0], root, hops + 1);
      return { schema: { ...inner.schema, ...without(schema, name) }, nullable: true };
    }
  }
  const types = own(schema, 'type');
  if (Array.isArray(types)) {
    const rest = types.filter((type) => type !== 'null');
    const [only] = rest;
    if (rest.length === 1 && only !== undefined) {
      return { schema: { ...schema, type: only }, nullable: rest.length < types.length };
    }
  }
  return { schema, nullable: false };
}

interface SimpleSchema {
  schema: Schema;
  nullable: boolean;
}

const without = (schema: Schema, key: string): Schema =>
  Object.fromEntries(Object.entries(schema).filter(([name]) => name !== key));

function target(reference: string, root: Schema): Json | undefined {
  if (!reference.startsWith('#/')) return { oneOf: [] };
  let found: Json | undefined = root;
  for (const part of reference.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    found = isObject(found) ? own(found, key) : undefined;
  }
  return found ?? { oneOf: [] };
}

interface Place {
  path: string[];
  root: Schema;
  nullable: boolean;
  required: boolean;
}

const JSON_KIND: Kind = { is: 'json' };

function kindOf(schema: Schema, proposed: Json | undefined, place: Place): Kind {
  const { nullable } = place;
  if (['oneOf', 'anyOf', 'allOf', 'not', 'if'].some((word) => own(schema, word) !== undefined)) {
    return JSON_KIND;
  }
  if (proposed === null && !nullable && own(schema, 'enum') === undefined) return JSON_KIND;
  const value = proposed ?? undefined;
  const choice = choiceOf(schema, proposed, place);
  if (choice) return choice;
  const type = text(own(schema, 'type')) ?? typeOf(value);
  if (proposed === null && (type === 'array' || type === 'object')) return JSON_KIND;
  switch (type) {
    case 'string':
      return value === undefined || typeof value === 'string' ? textKind(schema) : JSON_KIND;
    case 'number':
    case 'integer':
      return numberKind(schema, type === 'integer', value);
    case 'boolean':
      return value === undefined || typeof value === 'boolean' ? { is: 'yesno' } : JSON_KIND;
    case 'array':
      return arrayKind(schema, value, place);
    case 'object':
      return groupKind(schema, value, place);
    default:
      return JSON_KIND;
  }
}

function choiceOf(schema: Schema, proposed: Json | undefined, place: Place): Kind | null {
  const constant = own(schema, 'const');
  const given = own(schema, 'enum');
  let options: (Json | undefined)[] | null = null;
  if (constant !== undefined) options = [constant];
  else if (Array.isArray(given) && given.length <= MAX_FIELDS) options = [...given];
  else if (
    own(schema, 'type') === 'boolean' &&
    (place.nullable || (proposed === undefined && !place.required))
  ) {
    options = [true, false];
  }
  if (!options) return null;
  if (place.nullable && !options.includes(null)) options.push(null);
  if (!place.required) options.push(undefined);
  const known = proposed === undefined || options.some((option) => sameJson(option, proposed));
  if (
    !known ||
    options.some(
      (option) =>
        option !== undefined &&
        typeof option === 'object' &&
        option !== null &&
        !(option instanceof ExactNumber),
    )
  ) {
    return JSON_KIND;
  }
  return { is: 'choice', options, fixed: options.length === 1 };
}

function typeOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string' || typeof value === 'boolean') return typeof value;
  if (isNumber(value)) return 'number';
  if (Array.isArray(value)) return 'array';
  return isObject(value) ? 'object' : undefined;
}

function textKind(schema: Schema): Kind {
  const format = text(own(schema, 'format'));
  return {
    is: 'text',
    format: format && FORMATS.includes(format) ? (format as TextFormat) : undefined,
    minLength: size(own(schema, 'minLength')),
    maxLength: size(own(schema, 'maxLength')),
    pattern: text(own(schema, 'pattern')),
  };
}

function numberKind(schema: Schema, integer: boolean, value: Json | undefined): Kind {
  if (value !== undefined && !(isNumber(value) && (!integer || isDigits(value)))) return JSON_KIND;
  const bound = (name: string) => {
    const found = own(schema, name);
    return isNumber(found) ? found : undefined;
  };
  return {
    is: 'number',
    integer,
    minimum: bound('minimum'),
    maximum: bound('maximum'),
    above: bound('exclusiveMinimum'),
    below: bound('exclusiveMaximum'),
  };
}

const isWords = (values: Json[]): values is string[] =>
  values.every((each) => typeof each === 'string');

function arrayKind(schema: Schema, value: Json | undefined, { root }: Place): Kind {
  if (value !== undefined && !Array.isArray(value)) return JSON_KIND;
  const limits = {
    minItems: size(own(schema, 'minItems')),
    maxItems: size(own(schema, 'maxItems')),
  };
  const given = own(schema, 'items');
  const items = simple(given, root).schema;
  const type = text(own(items, 'type')) ?? typeOf(value?.[0]);
  const options = own(items, 'enum');
  if (Array.isArray(options) && isWords(options) && options.length <= MAX_OPTIONS) {
    const known = (value ?? []).every((each) => (options as Json[]).includes(each));
    const once = new Set(value ?? []).size === (value ?? []).length;
    return known && once ? { is: 'several', options, ...limits } : JSON_KIND;
  }
  if (type === 'object' && value?.length) return tableKind(items, value, limits);
  if (['enum', 'const', 'oneOf', 'anyOf', 'allOf'].some((word) => own(items, word) !== undefined)) {
    return JSON_KIND;
  }
  const fits = {
    string: (each: Json) => typeof each === 'string' && each !== '' && !/[\r\n]/.test(each),
    number: (each: Json) => isNumber(each),
    integer: (each: Json) => isNumber(each) && isDigits(each),
  };
  if (type !== 'string' && type !== 'number' && type !== 'integer') return JSON_KIND;
  if (!(value ?? []).every(fits[type])) return JSON_KIND;
  return { is: 'list', of: type === 'string' ? 'text' : type, ...limits };
}

function tableKind(
  items: Schema,
  rows: Json[],
  limits: { minItems?: number; maxItems?: number },
): Kind {
  if (rows.length > MAX_ROWS || !rows.every(isObject)) return JSON_KIND;
  const properties = own(items, 'properties');
  const present = new Set(rows.flatMap((row) => Object.keys(row)));
  const named = isObject(properties) ? Object.keys(properties) : [];
  const columns = [...new Set([...named, ...present])].filter((key) => present.has(key));
  if (columns.length === 0 || columns.length > MAX_COLUMNS) return JSON_KIND;
  const titled = columns.map((key) => {
    const property = isObject(properties) ? own(properties, key) : undefined;
    return { key, title: isObject(property) ? text(own(property, 'title')) : undefined };
  });
  return { is: 'table', columns: titled, ...limits };
}

function groupKind(schema: Schema, value: Json | undefined, { path, root }: Place): Kind {
  if (value !== undefined && !isObject(value)) return JSON_KIND;
  const fields = objectFields(schema, value ?? {}, path, root);
  const tooMuch = path.length >= MAX_DEPTH || fields.length === 0 || fields.length > MAX_FIELDS;
  return tooMuch ? JSON_KIND : { is: 'group', fields };
}
