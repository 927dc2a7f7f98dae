/** Amounts of money: what people type, and what the ledger says. */
import { fourDecimals } from '../ui/format';

/** The cents of "20", "$1,000" or "20,50". Null if that is not an amount. */
export function parseDollars(typed: string): number | null {
  const text = typed.trim().replace(/^\$\s*/, '');
  const plain = /^\d{1,3}(,\d{3})+(\.\d{1,2})?$/.test(text)
    ? text.replaceAll(',', '')
    : text.replace(',', '.');
  return /^\d+(\.\d{0,2})?$/.test(plain) ? Math.round(Number(plain) * 100) : null;
}

/** Cents as somebody would type them: "20", "20.50". */
export const typedDollars = (value: number): string =>
  value % 100 ? (value / 100).toFixed(2) : String(value / 100);

/** "+$20.0000", "−$0.0732": four decimals for every amount, so that they stand in line. */
export function signed(micros: number): string {
  const size = Math.abs(micros);
  // Nothing is rounded to zero.
  const text = size > 0 && size < 100 ? `$${(size / 1e6).toFixed(6)}` : fourDecimals(size / 1e6);
  return micros === 0 ? text : `${micros > 0 ? '+' : '−'}${text}`;
}

/** All six decimals. */
export const exactUsd = (micros: number): string =>
  `${micros < 0 ? '−' : ''}$${(Math.abs(micros) / 1e6).toFixed(6)}`;
