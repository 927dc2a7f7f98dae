import type { TimelineStep } from '@rota/sdk';
import { expect, test } from 'vitest';
import { foldMask, labelAt, scaleOf, spanOf, total, union } from './folding';
import { amountsOf, intervalsOf, rowsOf, settled, wanted } from './timelineRows';

const START = Date.parse('2026-11-12T08:00:00Z');
const at = (seconds: number) => START + seconds * 1_000;
const span = (from: number, to: number) => ({ from: at(from), to: at(to) });

function step(from: number, to: number | null, more: Partial<TimelineStep> = {}): TimelineStep {
  return {
    id: `call-${from}`,
    kind: 'model',
    run: 1,
    step: 1,
    name: 'strong',
    server: null,
    state: to === null ? 'started' : 'finished',
    outcome: to === null ? null : 'ok',
    arguments: null,
    result: null,
    childTaskId: null,
    inputTokens: 0,
    outputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    estimated: false,
    copied: false,
    costUsd: '0.000000',
    priceVersion: null,
    startedAt: new Date(at(from)).toISOString(),
    finishedAt: to === null ? null : new Date(at(to)).toISOString(),
    durationMs: null,
    decidedBy: null,
    note: null,
    truncated: [],
    ...more,
  };
}

test('work at the same time counts once', () => {
  expect(union([span(5, 9), span(0, 6), span(20, 21)])).toEqual([span(0, 9), span(20, 21)]);
  expect(total(union([span(0, 6), span(0, 6)]))).toBe(6_000);
});

test('hours of waiting take one narrow column and bars keep their proportions', () => {
  const { folds, x } = scaleOf([span(0, 30), span(8_070, 8_100)], [span(30, 8_070)]);
  expect(folds).toHaveLength(1);
  expect(folds[0]?.width).toBe(4);
  const first = x(at(30)) - x(at(0));
  expect(first).toBeCloseTo(x(at(8_100)) - x(at(8_070)));
  expect(first).toBeGreaterThan(40);
  expect(x(at(8_070)) - x(at(30))).toBeCloseTo(4);
});

test('work that goes on while somebody decides is not folded away', () => {
  const { folds } = scaleOf([span(0, 600)], [span(10, 500)]);
  expect(folds).toEqual([]);
});

test('a short pause of the machine keeps its length', () => {
  const { folds, x } = scaleOf([span(0, 30), span(32, 60)], []);
  expect(folds).toEqual([]);
  expect(x(at(32))).toBeGreaterThan(x(at(30)));
});

test('a task that waits before it ever ran, and one with steps of no length', () => {
  const waiting = scaleOf([], [span(0, 3_600)]);
  expect(waiting.folds).toHaveLength(1);
  expect(waiting.x(at(3_600))).toBe(4);
  const instant = scaleOf([span(0, 0)], []);
  expect(instant.x(at(0))).toBe(0);
  expect(scaleOf([], []).x(at(5))).toBe(0);
});

test('a clock that is behind never gives a step a negative length', () => {
  expect(spanOf(step(10, 4), at(0))).toEqual(span(10, 10));
  expect(spanOf(step(10, null), at(3))).toEqual(span(10, 10));
});

test('a running step grows, a rejected call took no time, a gated one is no work', () => {
  const running = new Map([['task', [step(0, 5), step(5, null)]]]);
  expect(total(union(intervalsOf(running, at(12)).work))).toBe(12_000);
  expect(spanOf(step(0, 3_600, { kind: 'tool', outcome: 'rejected' }), 0)).toEqual(
    span(3_600, 3_600),
  );
  const gated = new Map([['task', [step(0, null, { kind: 'tool', state: 'gated' })]]]);
  expect(intervalsOf(gated, at(60)).work).toEqual([]);
});

test('a call that its run left without a result does not grow', () => {
  const lost = step(0, null, { kind: 'tool' });
  const running = step(20, null, { run: 2 });
  const work = (steps: TimelineStep[], ended: boolean) =>
    total(union(intervalsOf(new Map([['task', settled(steps, ended)]]), at(30)).work));
  expect(work([lost, running], false)).toBe(10_000);
  expect(work([lost], true)).toBe(0);
  expect(work([lost], false)).toBe(30_000);
});

test('labels of the axis do not overlap', () => {
  const { ticks } = scaleOf([span(0, 30), span(100, 130)], [span(30, 100)]);
  const places = ticks.map((tick) => tick.at);
  for (const [index, place] of places.entries()) {
    if (index) expect(place - (places[index - 1] ?? 0)).toBeGreaterThanOrEqual(8);
  }
  expect(ticks.filter((tick) => tick.fold).map((tick) => tick.ms)).toEqual([70_000]);
});

test('every fold is in the mask', () => {
  expect(foldMask([{ from: 0, to: 1, at: 10, width: 4 }])).toBe(
    'linear-gradient(to right, transparent 0, transparent 10%, black 10% 14%, transparent 14%)',
  );
});

test('steps of a subtask come below their call, with its tokens and cost', () => {
  const timelines = new Map([
    [
      'parent',
      [
        step(0, 1, { costUsd: '0.100000', inputTokens: 10 }),
        step(1, 9, { kind: 'tool', name: 'delegate', childTaskId: 'child' }),
      ],
    ],
    ['child', [step(2, 8, { costUsd: '0.200000', inputTokens: 5 })]],
  ]);
  const rows = rowsOf('parent', timelines, () => true);
  expect(rows.map((row) => (row.kind === 'step' ? [row.depth, row.number] : null))).toEqual([
    [0, 1],
    [0, 2],
    [1, null],
  ]);
  expect(amountsOf('parent', timelines)).toEqual({
    inputTokens: 15,
    outputTokens: 0,
    costUsd: 0.3,
    complete: true,
  });
  expect(intervalsOf(timelines, 0).work).toEqual([span(0, 1), span(2, 8)]);
  expect(rowsOf('parent', timelines, () => false)).toHaveLength(2);
});

test('runs are separated, and a circle of subtasks ends', () => {
  const steps = [step(0, 1), step(5, 6, { run: 2 })];
  expect(rowsOf('task', new Map([['task', steps]]), () => true).map((row) => row.kind)).toEqual([
    'run',
    'step',
    'run',
    'step',
  ]);
  const circle = new Map([
    ['a', [step(0, 1, { childTaskId: 'b' })]],
    ['b', [step(0, 1, { childTaskId: 'a' })]],
  ]);
  expect(
    wanted(
      'a',
      (id) => circle.get(id),
      () => true,
    ),
  ).toEqual([{ id: 'b', live: false }]);
  expect(rowsOf('a', circle, () => true).length).toBeLessThan(12);
});

test('every fold has its length on the axis, also beside another one', () => {
  const { folds, ticks } = scaleOf(
    [span(0, 60), span(3_660, 3_661), span(7_261, 7_321)],
    [span(60, 3_660), span(3_661, 7_261)],
  );
  expect(folds).toHaveLength(2);
  const labelled = ticks.filter((tick) => tick.fold).flatMap(({ ms, also = [] }) => [ms, ...also]);
  expect(labelled).toEqual([3_600_000, 3_600_000]);
});

test('the words of a bar do not lie on a fold', () => {
  const fold = { from: 0, to: 1, at: 12, width: 4 };
  expect(labelAt('340 ms', 0, 1, [fold])).toBe(1);
  expect(labelAt('failed, 340 ms', 0, 10, [fold])).toBe(16);
  expect(labelAt('340 ms', 90, 95, [fold])).toBeNull();
});

test('the model of a call is named where it changes', () => {
  const steps = [step(0, 1), step(1, 2), step(2, 3, { name: 'fast' }), step(3, 4)];
  const rows = rowsOf('task', new Map([['task', steps]]), () => true);
  expect(rows.map((row) => row.kind === 'step' && row.model)).toEqual([
    'strong',
    null,
    'fast',
    'strong',
  ]);
});
