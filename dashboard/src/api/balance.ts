/** How what is available is made up, so that the parts that people see add up to the cent. */
import type { BalanceResponse } from '@rota/sdk';

/** In cents: allowance + earlier + topUp − held is what is available. */
export interface Parts {
  allowance: number;
  /** What runs of an earlier month hold of that month's allowance. It is part of `held`. */
  earlier: number;
  topUp: number;
  held: number;
}

/** The API rounds each amount by itself, so that together they can be this far off. */
const ROUNDING_CENTS = 2;

export function partsOf(balance: BalanceResponse): Parts {
  const parts: Parts = {
    allowance: balance.usageBar.remaining,
    earlier: 0,
    topUp: balance.topUpCents,
    held: balance.balance.reservedCents,
  };
  const off = balance.totalAvailable - (parts.allowance + parts.topUp - parts.held);
  if (Math.abs(off) > ROUNDING_CENTS) parts.earlier = off;
  else if (parts.held >= off && parts.held > 0) parts.held -= off;
  else parts.topUp += off;
  return parts;
}
