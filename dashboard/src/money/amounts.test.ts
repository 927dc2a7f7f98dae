import type { BalanceResponse } from '@rota/sdk';
import { describe, expect, it } from 'vitest';
import { heldCents, parseDollars, signed, sumNote } from './amounts';

describe('typed dollars', () => {
  it.each([
    ['20', 2_000],
    ['$20.5', 2_050],
    ['20,50', 2_050],
    ['1,000', 100_000],
    ['1,000.25', 100_025],
    ['', null],
    ['-5', null],
    ['5.123', null],
    ['1e3', null],
  ])('reads %s', (typed, cents) => expect(parseDollars(typed)).toBe(cents));
});

describe('amounts of the ledger', () => {
  it.each([
    [20_000_000, '+$20.00'],
    [-1_200_000, '−$1.20'],
    [-73_200, '−$0.0732'],
    [137_655, '+$0.1377'],
    [-12, '−$0.000012'],
    [0, '$0.00'],
  ])('writes %i micro-dollars', (micros, text) => expect(signed(micros)).toBe(text));
});

it.each([
  ['12.6107', 1_262],
  ['0.15', 15],
  ['0', 0],
])('rounds %s that is held as the balance does', (usd, cents) =>
  expect(heldCents(usd)).toBe(cents),
);

it('says why the parts of the balance do not add up', () => {
  const balance = (totalAvailable: number) =>
    ({
      totalAvailable,
      topUpCents: 4_250,
      usageBar: { remaining: 836 },
      balance: { reservedCents: 405 },
    }) as BalanceResponse;
  expect(sumNote(balance(4_681))).toBeNull();
  expect(sumNote(balance(4_682))).toBe('rounded');
  expect(sumNote(balance(4_750))).toBe('older');
});
