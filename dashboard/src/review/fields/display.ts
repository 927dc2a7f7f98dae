/** Values of arguments as text that shows everything. */
import { ExactNumber, type Json, stringifyExact } from '../../api/exact';
import { type Change, diff, runs, words } from '../../ui/diff';
import { hasHidden } from '../../ui/SafeText';
import { prettyJson } from '../edits';
import { type Field, isObject } from '../schema';
import { strings } from '../strings';

export function shownValue(value: Json | undefined): string {
  if (value === undefined) return strings.notSent;
  if (value === null) return strings.none;
  if (value === true) return strings.yes;
  if (value === false) return strings.no;
  if (value === '') return strings.emptyText;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || value instanceof ExactNumber) return stringifyExact(value);
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) {
    return value.length ? value.join(', ') : strings.emptyList;
  }
  return prettyJson(value);
}

/** Whether a text anywhere in the value has characters that a reader cannot see. */
export function hiddenIn(value: Json | undefined): boolean {
  if (typeof value === 'string') return hasHidden(value);
  if (Array.isArray(value)) return value.some(hiddenIn);
  if (!isObject(value)) return false;
  return Object.entries(value).some(([key, each]) => hasHidden(key) || hiddenIn(each));
}

const CONTEXT = 24;
const SHORT = 80;

export type Piece = Pick<Change, 'kind' | 'text'>;

/** What changed in a long text, word by word, with a little of what stands around it. */
export function changes(before: string, after: string): Piece[] | null {
  if (before.length <= SHORT && after.length <= SHORT) return null;
  const pieces = runs(diff(words(before), words(after)));
  return pieces.map(({ kind, text }, at) => {
    if (kind !== 'same') return { kind, text };
    const [first, last] = [at === 0, at === pieces.length - 1];
    const start = first ? '' : cut(text, CONTEXT);
    const end = last ? '' : cut(text, -CONTEXT);
    const all = start.length + end.length >= text.length;
    return { kind, text: all ? text : `${start}…${end}` };
  });
}

/** So many characters of the start, or of the end. A character is never cut in two. */
const cut = (text: string, length: number): string =>
  (length > 0 ? Array.from(text).slice(0, length) : Array.from(text).slice(length)).join('');

const { kinds } = strings;

/** What kind of value is wanted: "text, up to 35 characters, required". */
export function kindWords(field: Field, leftOut = 0): string {
  const { kind } = field;
  const said: (string | undefined)[] = [];
  if (kind.is === 'text') {
    said.push(kind.format ? kinds[kind.format] : kinds.text);
    if (kind.minLength && (kind.minLength > 1 || !field.required))
      said.push(kinds.from(kind.minLength));
    if (kind.maxLength) said.push(kinds.upTo(kind.maxLength));
  } else if (kind.is === 'number') {
    const bound = (name: (value: string) => string, value: Json | undefined) =>
      value === undefined ? undefined : name(stringifyExact(value));
    said.push(kind.integer ? kinds.integer : kinds.number);
    said.push(bound(kinds.least, kind.minimum), bound(kinds.above, kind.above));
    said.push(bound(kinds.most, kind.maximum), bound(kinds.below, kind.below));
  } else if (kind.is === 'choice') {
    said.push(kind.fixed ? kinds.fixed : kinds.choice(kind.options.length));
  } else if (kind.is === 'several') said.push(kinds.several(kind.options.length));
  else if (kind.is === 'list') said.push(kinds.listOf[kind.of], kinds.onePerLine);
  else if (kind.is === 'table') {
    said.push(kinds.rows(Array.isArray(field.proposed) ? field.proposed.length : 0, leftOut));
  } else if (kind.is === 'yesno') said.push(kinds.yesno);
  else if (kind.is === 'json') said.push(kinds.json);
  if (field.required && kind.is !== 'yesno') said.push(kinds.required);
  return said.filter(Boolean).join(', ');
}
