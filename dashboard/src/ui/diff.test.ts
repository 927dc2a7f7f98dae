import { expect, test } from 'vitest';
import { aligned, diff, fold, lines, runs, words } from './diff';

const shown = (before: string, after: string) =>
  diff(lines(before), lines(after)).map(
    ({ kind, text }) => ({ same: ' ', removed: '-', added: '+' })[kind] + text,
  );

test('keeps the longest common part', () => {
  expect(shown('a\nb\nc\nd', 'a\nc\nx\nd')).toEqual([' a', '-b', ' c', '+x', ' d']);
});

test('equal texts have no difference', () => {
  expect(shown('a\nb', 'a\nb')).toEqual([' a', ' b']);
});

test('a text that is empty is only added to or removed from', () => {
  expect(shown('', 'a\nb')).toEqual(['+a', '+b']);
  expect(shown('a', '')).toEqual(['-a']);
});

test('places count the lines of both texts', () => {
  const changes = diff(['a', 'b', 'c'], ['a', 'x', 'y', 'c']);
  expect(changes.map(({ before, after }) => [before, after])).toEqual([
    [0, 0],
    [1, null],
    [null, 1],
    [null, 2],
    [2, 3],
  ]);
});

test('both texts can be read from the difference, however long it is', () => {
  const before = Array.from({ length: 3_000 }, (_, i) => `old ${i}`);
  const after = Array.from({ length: 3_000 }, (_, i) => (i % 2 ? `new ${i}` : `old ${i}`));
  const changes = diff(before, after);
  expect(changes.filter((each) => each.kind !== 'added').map((each) => each.text)).toEqual(before);
  expect(changes.filter((each) => each.kind !== 'removed').map((each) => each.text)).toEqual(after);
});

test('words keep the space between them', () => {
  expect(runs(diff(words('Send a  mail now'), words('Send a  letter now')))).toEqual([
    { kind: 'same', text: 'Send a  ' },
    { kind: 'removed', text: 'mail' },
    { kind: 'added', text: 'letter' },
    { kind: 'same', text: ' now' },
  ]);
});

test('lines far from a change are folded', () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const after = before.with(10, 'changed');
  const folded = fold(diff(before, after), 2);
  expect(folded.map((each) => (each.kind === 'fold' ? each.count : each.kind))).toEqual([
    8,
    'same',
    'same',
    'removed',
    'added',
    'same',
    'same',
    7,
  ]);
});

test('two columns put what was added beside what it replaced', () => {
  const pairs = aligned(diff(['a', 'b', 'c', 'd'], ['a', 'x', 'y', 'z', 'd']));
  expect(pairs.map(({ before, after }) => [before?.text, after?.text])).toEqual([
    ['a', 'a'],
    ['b', 'x'],
    ['c', 'y'],
    [undefined, 'z'],
    ['d', 'd'],
  ]);
});
