/** Amounts of money: what people type, and what the ledger says. */
import { usd } from '../ui/format';

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

/** Whether an amount has no fraction of a cent. */
export const isWholeCents = (micros: number): boolean => micros % 10_000 === 0;

/** "+$20.00", "−$0.0732". Costs have four decimals, and so has what is not in whole cents. */
export function signed(micros: number, fine = false): string {
  const size = Math.abs(micros);
  // Nothing is rounded to zero.
  const text =
    size > 0 && size < 100
      ? `$${(size / 1e6).toFixed(6)}`
      : usd(size / 1e6, fine || !isWholeCents(micros) ? 4 : 2);
  return micros === 0 ? text : `${micros > 0 ? '+' : '−'}${text}`;
}

/** All six decimals. */
export const exactUsd = (micros: number): string =>
  `${micros < 0 ? '−' : ''}$${(Math.abs(micros) / 1e6).toFixed(6)}`;
