import { describe, expect, it } from 'vitest';
import { parseDollars, signed } from './amounts';

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

  it('writes costs with four decimals, also whole cents', () =>
    expect(signed(-20_000, true)).toBe('−$0.0200'));
});
