/** Amounts of money: what people type, and what the ledger says. */
import type { BalanceResponse } from '@rota/sdk';
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

/** "+$20.00", "−$0.0732". Whole cents have two decimals; nothing is rounded to zero. */
export function signed(micros: number): string {
  const size = Math.abs(micros);
  const text =
    size % 10_000 === 0
      ? usd(size / 1e6)
      : size < 100
        ? `$${(size / 1e6).toFixed(6)}`
        : usd(size / 1e6, 4);
  return micros === 0 ? text : `${micros > 0 ? '+' : '−'}${text}`;
}

/** What is held, in whole cents, rounded up as in the balance. */
export const heldCents = (heldUsd: string): number =>
  Math.ceil(Math.round(Number(heldUsd) * 1e6) / 1e4);

/** All six decimals. */
export const exactUsd = (micros: number): string =>
  `${micros < 0 ? '−' : ''}$${(Math.abs(micros) / 1e6).toFixed(6)}`;

export type SumNote = 'rounded' | 'older' | null;

/**
 * Why allowance + top-up − held is not what is available: each amount is rounded to the cent, or
 * a run that began in an earlier month still holds a part of that month's allowance.
 */
export function sumNote(balance: BalanceResponse): SumNote {
  const sum = balance.usageBar.remaining + balance.topUpCents - balance.balance.reservedCents;
  const difference = balance.totalAvailable - sum;
  if (difference === 0) return null;
  return Math.abs(difference) <= 2 ? 'rounded' : 'older';
}
