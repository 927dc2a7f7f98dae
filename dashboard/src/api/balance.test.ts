import type { BalanceResponse } from '@rota/sdk';
import { expect, test } from 'vitest';
import { partsOf } from './balance';

test.each([
  ['exact', 4_681, 836, 4_250, 405, { allowance: 836, earlier: 0, topUp: 4_250, held: 405 }],
  ['rounded', 6_189, 7_450, 0, 1_262, { allowance: 7_450, earlier: 0, topUp: 0, held: 1_261 }],
  ['without holds', 1_101, 600, 500, 0, { allowance: 600, earlier: 0, topUp: 501, held: 0 }],
  [
    'held since last month',
    4_750,
    836,
    4_250,
    405,
    { allowance: 836, earlier: 69, topUp: 4_250, held: 405 },
  ],
] as const)(
  'the parts of a balance add up: %s',
  (_, totalAvailable, remaining, topUp, held, parts) => {
    const balance = {
      totalAvailable,
      topUpCents: topUp,
      usageBar: { remaining },
      balance: { reservedCents: held },
    } as BalanceResponse;
    const found = partsOf(balance);
    expect(found).toEqual(parts);
    expect(found.allowance + found.earlier + found.topUp - found.held).toBe(totalAvailable);
  },
);
