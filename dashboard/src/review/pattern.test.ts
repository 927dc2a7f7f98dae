import { expect, test } from 'vitest';
import { patternOf } from './pattern';

test.each([
  ['^T-[0-9]{4}$', 'T-4821', 'X', 'T-1234'],
  ['^INV-\\d{4}(-[A-Z]{2})?$', 'INV-0001', 'INV-1', 'INV-1234-AB'],
  ['^[a-z]+@[a-z]+\\.[a-z]{2,3}$', 'ada@shop.de', 'ada@shop', null],
  ['^(open|solved)$', 'solved', 'lost', 'open'],
  ['^(?:GB|DE)[0-9]{2}$', 'DE12', 'FR12', 'GB12'],
  ['[0-9]', 'room 5', 'room', '1'],
])('%s is checked', (source, good, bad, example) => {
  const pattern = patternOf(source);
  expect(pattern?.fits(good)).toBe(true);
  expect(pattern?.fits(bad)).toBe(false);
  if (example) expect(pattern?.example).toBe(example);
});

test.each([
  '^(a+)+$',
  '^(a|a)*$',
  '^(a*)*b$',
  '^((a?){30}){30}$',
  '^((){1000}){1000}$',
  '^(?=.*a).*$',
  '^(a)\\1+$',
  '(?<x>a)\\k<x>',
  '^a{2000}$',
  '^\\p{L}+$',
  `^${'a'.repeat(300)}$`,
  '^(',
])('%s is not checked', (source) => {
  expect(patternOf(source)).toBeNull();
});

test.each([
  '^.*.*.*.*.*.*.*.*x$',
  `^${'a?'.repeat(40)}${'a'.repeat(40)}$`,
  '(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)b',
  '\\s*\\s*\\s*x',
])('%s takes no time on a long text', (source) => {
  const start = performance.now();
  patternOf(source)?.fits('a'.repeat(1_000));
  patternOf(source)?.fits(' '.repeat(50_000));
  expect(performance.now() - start).toBeLessThan(1_000);
});
