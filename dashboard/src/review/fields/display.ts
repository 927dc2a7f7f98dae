/** Values of arguments as text that shows everything. */
import { ExactNumber, type Json, stringifyExact } from '../../api/exact';
import { hasHidden, marks } from '../../ui/SafeText';
import { prettyJson } from '../edits';
import { type Field, isObject } from '../schema';
import { strings } from '../strings';

/** For places that can show only plain text, such as an option. */
export const visible = (text: string): string =>
  marks(text)
    .map((part) => (part.hidden ? `⟨${part.text}⟩` : part.text))
    .join('');

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

const CONTEXT = 16;
const SHORT = 80;

/** Two texts without their long common beginning and end. */
export function difference(before: string, after: string): [string, string] {
  if (before.length <= SHORT && after.length <= SHORT) return [before, after];
  const [a, b] = [Array.from(before), Array.from(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) {
    end += 1;
  }
  const from = Math.max(0, start - CONTEXT);
  const back = Math.max(0, end - CONTEXT);
  const cut = (text: string[]) =>
    `${from ? '…' : ''}${text.slice(from, text.length - back).join('')}${back ? '…' : ''}`;
  return [cut(a), cut(b)];
}

const { kinds } = strings;

/** What kind of value is wanted: "text, up to 35 characters, required". */
export function kindWords(field: Field, leftOut = 0): string {
  const { kind } = field;
  const words: (string | undefined)[] = [];
  if (kind.is === 'text') {
    words.push(kind.format ? kinds[kind.format] : kinds.text);
    if (kind.minLength && (kind.minLength > 1 || !field.required))
      words.push(kinds.from(kind.minLength));
    if (kind.maxLength) words.push(kinds.upTo(kind.maxLength));
  } else if (kind.is === 'number') {
    const bound = (name: (value: string) => string, value: Json | undefined) =>
      value === undefined ? undefined : name(stringifyExact(value));
    words.push(kind.integer ? kinds.integer : kinds.number);
    words.push(bound(kinds.least, kind.minimum), bound(kinds.above, kind.above));
    words.push(bound(kinds.most, kind.maximum), bound(kinds.below, kind.below));
  } else if (kind.is === 'choice') {
    words.push(kind.fixed ? kinds.fixed : kinds.choice(kind.options.length));
  } else if (kind.is === 'several') words.push(kinds.several(kind.options.length));
  else if (kind.is === 'list') words.push(kinds.listOf[kind.of], kinds.onePerLine);
  else if (kind.is === 'table') {
    words.push(kinds.rows(Array.isArray(field.proposed) ? field.proposed.length : 0, leftOut));
  } else if (kind.is === 'yesno') words.push(kinds.yesno);
  else if (kind.is === 'json') words.push(kinds.json);
  if (field.required && kind.is !== 'yesno') words.push(kinds.required);
  return words.filter(Boolean).join(', ');
}
