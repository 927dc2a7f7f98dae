import { expect, test } from 'vitest';
import { ExactNumber, parseExact, stringifyExact } from './exact';

test.each([
  '{"amount":123456789012345678901234567890,"rate":0.1}',
  '[1.0,-0.0,1e16,0.30000000000000004441,9007199254740993]',
  '{"text":"12345678901234567890 \\" 1.0","n":1.0}',
  '{"__proto__":{"a":1.0},"10":1}',
])('%s comes back as it was', (text) => {
  expect(stringifyExact(parseExact(text))).toBe(
    text.startsWith('{"__proto__"') ? '{"10":1,"__proto__":{"a":1.0}}' : text,
  );
});

test('numbers that JavaScript can hold stay numbers', () => {
  expect(parseExact('[1,2.5,9007199254740993]')).toEqual([
    1,
    2.5,
    new ExactNumber('9007199254740993'),
  ]);
});

test('text that is not JSON is refused', () => {
  expect(() => parseExact('{"a":01}')).toThrow();
  expect(() => parseExact('{a:1}')).toThrow();
});
