/** The columns of a list of objects: numbers under each other, with their unit and their sum. */
import type { Json } from '../../api/exact';
import { isNumber, isObject, readable } from '../schema';
import { shownValue } from './display';

export interface Column {
  key: string;
  name: string;
  /** A column of numbers stands at the right. */
  end: boolean;
  cell: (row: Json) => string;
  /** Null where a sum would say nothing. */
  sum: (rows: Json[]) => string | null;
}

const SYMBOLS: Record<string, string> = { usd: '$', eur: '€', gbp: '£' };
const CODES = ['chf', 'jpy', 'sek', 'nok', 'dkk', 'pln', 'czk', 'cad', 'aud', 'nzd', 'inr'];
const AMOUNTS = /^(amounts?|totals?|sum|subtotal|costs?|fees?|tax|vat|net|gross|paid|due|cents)$/;
const QUANTITIES = /^(quantity|qty|hours|minutes|days|units|pieces|count)$/;
const NOT_SUMMED = /^(id|number|no|rate|percent|per|unit|year|price)$/;
const PLAIN = /^-?\d+(\.\d+)?$/;

const wordsOf = (key: string): string[] => readable(key).toLowerCase().split(' ');

/** What stands before each amount, if the name of the column says which money it is. */
function moneyOf(key: string): string | null {
  const last = wordsOf(key).at(-1) ?? '';
  return SYMBOLS[last] ?? (CODES.includes(last) ? `${last.toUpperCase()} ` : null);
}

/** "amountUsd" as "Amount": the sign stands before each amount. */
function nameOf(key: string, title: string | undefined): string {
  if (title) return title;
  const words = readable(key).split(' ');
  return moneyOf(key) && words.length > 1 ? words.slice(0, -1).join(' ') : words.join(' ');
}

const valueIn = (row: Json, key: string): Json | undefined =>
  isObject(row) && Object.hasOwn(row, key) ? row[key] : undefined;

const isSummed = (key: string): boolean => {
  const words = wordsOf(key);
  if (words.some((word) => NOT_SUMMED.test(word))) return false;
  return moneyOf(key) !== null || words.some((w) => AMOUNTS.test(w) || QUANTITIES.test(w));
};

/** Amounts of several currencies have no sum. */
const isMixed = (rows: Json[]): boolean =>
  new Set(rows.map((row) => shownValue(valueIn(row, 'currency')))).size > 1;

const decimalsOf = (text: string): number => text.split('.')[1]?.length ?? 0;

/** The same number with more zeros behind it. No digit changes. */
function padded(text: string, decimals: number, grouped: boolean): string {
  const [whole = '', rest = ''] = text.split('.');
  const shown = grouped ? whole.replace(/\B(?=(\d{3})+$)/g, ',') : whole;
  return decimals ? `${shown}.${rest.padEnd(decimals, '0')}` : shown;
}

const signed = (text: string, money: string): string =>
  text.startsWith('-') ? `−${money}${text.slice(1)}` : `${money}${text}`;

function added(texts: string[], decimals: number): string {
  const total = texts.reduce(
    (sum, text) => sum + BigInt(padded(text, decimals, false).replace('.', '')),
    0n,
  );
  const digits = String(total < 0n ? -total : total).padStart(decimals + 1, '0');
  const at = digits.length - decimals;
  const text = decimals ? `${digits.slice(0, at)}.${digits.slice(at)}` : digits;
  return total < 0n ? `-${text}` : text;
}

export function columnsOf(names: { key: string; title?: string }[], rows: Json[]): Column[] {
  return names.map(({ key, title }) => {
    const name = nameOf(key, title);
    const values = rows.map((row) => valueIn(row, key));
    const plain = values.every((value) => isNumber(value) && PLAIN.test(shownValue(value)));
    if (!plain || !rows.length) {
      const end = rows.length > 0 && values.every(isNumber);
      return { key, name, end, cell: (row) => shownValue(valueIn(row, key)), sum: () => null };
    }
    const money = moneyOf(key);
    const summed = isSummed(key);
    const decimals = Math.max(
      money ? 2 : 0,
      ...values.map((value) => decimalsOf(shownValue(value))),
    );
    const shown = (text: string) => signed(padded(text, decimals, summed), money ?? '');
    return {
      key,
      name,
      end: true,
      cell: (row) => shown(shownValue(valueIn(row, key))),
      sum: (kept) =>
        summed && rows.length > 1 && !isMixed(kept)
          ? shown(
              added(
                kept.map((row) => shownValue(valueIn(row, key))),
                decimals,
              ),
            )
          : null,
    };
  });
}
