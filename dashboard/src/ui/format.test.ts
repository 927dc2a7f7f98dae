import { expect, test } from 'vitest';
import { coarse, day, duration, relative, roundedDown, usd } from './format';

test.each([
  ['0.21', 2, '$0.21'],
  ['0', 4, '$0'],
  ['0.0149', 4, '$0.0149'],
  ['0.0004', 2, '<$0.01'],
  ['0.0089', 2, '$0.01'],
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

test.each([
  ['64.847800', '$64.84'],
  ['64.850000', '$64.85'],
  ['0.29', '$0.29'],
  ['0.009999', '$0.00'],
  ['1234.5', '$1,234.50'],
  ['-0.004', '−$0.01'],
])('of %s, %s is available', (amount, text) => expect(roundedDown(amount)).toBe(text));

test('under a minute is just now', () => {
  const now = Date.parse('2026-11-15T12:00:00Z');
  expect(relative('2026-11-15T11:59:01Z', now)).toBe('just now');
  expect(relative('2026-11-15T11:59:00Z', now)).toBe('1 min ago');
  expect(relative('2026-11-15T12:00:59Z', now)).toBe('in a moment');
});

test('what is older than a week has its day', () => {
  const now = Date.parse('2026-11-15T12:00:00Z');
  expect(relative('2026-11-13T09:00:00Z', now)).toBe('2 d 3 h ago');
  expect(relative('2026-11-02T15:00:00Z', now)).toBe(day('2026-11-02T15:00:00Z'));
  expect(relative('2026-11-28T12:00:00Z', now)).toBe('in 13 d');
});
