import { expect, test } from 'vitest';
import { hasHidden, marks, pieces } from './SafeText';

test('characters that turn the direction of text are shown as marks', () => {
  expect(marks('pay\u202Eeht llib').map((part) => part.text)).toEqual([
    'pay',
    'U+202E',
    'eht llib',
  ]);
});

test('invisible characters are shown, and visible text of any script is not touched', () => {
  expect(hasHidden('zero\u200Bwidth')).toBe(true);
  expect(hasHidden('Grüße, 你好, مرحبا, नमस्ते')).toBe(false);
});

test('an emoji that is made of several characters stays whole', () => {
  expect(hasHidden('👩‍💻 ❤️')).toBe(false);
  expect(hasHidden('plain\u200Dtext')).toBe(true);
});

test('a very long word is cut into pieces, and other text is not', () => {
  const word = '👍'.repeat(1_000);
  const cut = pieces(`before ${word} after`);
  expect(cut.join('')).toBe(`before ${word} after`);
  expect(Math.max(...cut.map((piece) => [...piece].length))).toBe(200);
  expect(cut.some((piece) => /\p{Surrogate}/u.test(piece))).toBe(false);
  const plain = 'Some words in a line. '.repeat(1_000);
  expect(pieces(plain)).toEqual([plain]);
});
