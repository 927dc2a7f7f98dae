import { expect, test } from 'vitest';
import { changes } from './display';

const letter = [
  'Hello Jonas,',
  'your October invoice was issued on the last day of the month, as every month.',
  'I have attached it here again. Please write to us if anything else is missing.',
  'Best regards, Fernhill Support',
].join('\n\n');

test('two small edits of a letter mark two words, not the letter', () => {
  const mine = letter.replace('Jonas', 'Mina').replace('Best regards', 'Kind regards');
  const pieces = changes(letter, mine) ?? [];
  const of = (kind: string) => pieces.filter((p) => p.kind === kind).map((p) => p.text);
  expect(of('removed')).toEqual(['Jonas,', 'Best']);
  expect(of('added')).toEqual(['Mina,', 'Kind']);
  expect(of('same')[1]).toMatch(/^\n\nyour October.*….*missing\.\n\n$/s);
  expect(of('same').join('').length).toBeLessThan(120);
});

test('short values are shown whole', () => {
  expect(changes('2026-11-13', '2026-11-16')).toBeNull();
});
