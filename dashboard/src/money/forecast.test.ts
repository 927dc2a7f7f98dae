import type { BalanceResponse, Forecast } from '@rota/sdk';
import { expect, it } from 'vitest';
import { outlook } from './forecast';

const balance = (changes: object = {}) =>
  ({
    hasAllowance: true,
    allowOverflow: true,
    topUpCents: 4_250,
    usageBar: { status: 'normal' },
    ...changes,
  }) as BalanceResponse;
const forecast = (changes: Partial<Forecast> = {}): Forecast => ({
  windowDays: 7,
  spentUsd: '14.000000',
  perDayUsd: '2.000000',
  allowanceLastsUntil: '2026-11-16T09:00:00Z',
  balanceLastsUntil: '2026-12-07T09:00:00Z',
  ...changes,
});

it('says who pays after the allowance', () => {
  expect(outlook(balance(), forecast(), true)).toMatchObject({
    kind: 'allowance-ends',
    next: 'top-up',
  });
  expect(outlook(balance({ topUpCents: 0 }), forecast(), true)).toMatchObject({
    next: 'needs-top-up',
  });
  expect(outlook(balance({ topUpCents: 0 }), forecast(), false)).toMatchObject({ next: 'refused' });
  expect(outlook(balance(), forecast(), false)).toMatchObject({ next: 'top-up' });
  expect(outlook(balance({ allowOverflow: false }), forecast(), true)).toMatchObject({
    next: 'refused',
  });
  expect(outlook(balance({ usageBar: { status: 'depleted' } }), forecast(), true)).toMatchObject({
    kind: 'allowance-ended',
    next: 'top-up',
  });
});

it('knows when nothing ends', () => {
  expect(outlook(balance(), forecast({ allowanceLastsUntil: null }), true).kind).toBe(
    'allowance-lasts',
  );
  expect(outlook(balance(), forecast({ perDayUsd: '0.000000' }), true).kind).toBe('quiet');
  expect(outlook(balance({ hasAllowance: false }), forecast(), true).kind).toBe('balance-ends');
});
