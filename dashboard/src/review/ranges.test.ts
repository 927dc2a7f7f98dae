import { expect, test } from 'vitest';
import { above, firstGap, overlap, type Range, withRange } from './ranges';

const all = (...ranges: [number, number][]): Range[] =>
  ranges.reduce<Range[]>((seen, [from, to]) => withRange(seen, { from, to }), []);

test('a jump to the end leaves the middle unseen', () => {
  expect(firstGap(all([0, 800], [4_200, 5_000]), 5_000)).toBe(800);
  expect(firstGap(all([4_200, 5_000]), 5_000)).toBe(0);
  expect(firstGap([], 5_000)).toBe(0);
});

test('reading in any order counts when nothing is left', () => {
  const seen = all([4_200, 5_000], [0, 800], [790, 2_000], [2_001, 4_300]);
  expect(seen).toEqual([{ from: 0, to: 5_000 }]);
  expect(firstGap(seen, 5_000)).toBeNull();
});

test('only what stayed on screen counts', () => {
  const glances = [
    { from: 0, to: 800 },
    { from: 500, to: 1_300 },
    { from: 1_200, to: 2_000 },
  ];
  expect(withRange([], overlap(glances))).toEqual([]);
  expect(withRange([], overlap(glances.slice(0, 2)))).toEqual([{ from: 500, to: 800 }]);
});

test('when the content grows, what stood above the change is still seen', () => {
  expect(above(all([0, 800], [2_000, 3_000]), 600)).toEqual([{ from: 0, to: 600 }]);
});
