import { expect, test } from 'vitest';
import { coarse, duration, usd } from './format';

test.each([
  ['0.21', 2, '$0.21'],
  ['0', 4, '$0'],
  ['0.0149', 4, '$0.0149'],
  ['0.0004', 2, '$0.0004'],
  ['-3.5', 2, '−$3.50'],
  ['1234.5', 2, '$1,234.50'],
] as const)('usd(%s, %s) is %s', (amount, decimals, text) =>
  expect(usd(amount, decimals)).toBe(text),
);

test.each([
  [340, '340 ms'],
  [6_200, '6.2 s'],
  [74_000, '1 min 14 s'],
  [8_040_000, '2 h 14 min'],
] as const)('duration(%s) is %s', (ms, text) => expect(duration(ms)).toBe(text));

test.each([
  [30_000, 'less than 1 min'],
  [12 * 60_000, '12 min'],
  [(6 * 24 + 21) * 3_600_000, '6 d 21 h'],
] as const)('coarse(%s) is %s', (ms, text) => expect(coarse(ms)).toBe(text));
