import type { TimelineStep } from '@rota/sdk';
import { expect, test } from 'vitest';
import { afterFork, figuresOf, stepsOfRun } from './figures';

const call = (run: number, step: number, call: number, more: object = {}): TimelineStep =>
  ({
    id: `call-${run}-${step}-${call}`,
    kind: call ? 'tool' : 'model',
    state: 'finished',
    run,
    step,
    copied: false,
    childTaskId: null,
    inputTokens: 5,
    outputTokens: 1,
    costUsd: call ? '0.000000' : '0.000020',
    startedAt: `2026-01-01T00:00:0${step}.000Z`,
    finishedAt: `2026-01-01T00:00:0${step}.500Z`,
    ...more,
  }) as TimelineStep;

const ids = (steps: TimelineStep[]) => steps.map((step) => step.id.slice(5));
const origin = (run: number, step: number) => ({ taskId: 'task_1', run, step });

test('the original counts from the step of the fork on', () => {
  const steps = [call(1, 1, 0), call(1, 1, 1), call(1, 2, 0), call(1, 2, 1), call(1, 3, 0)];
  expect(ids(afterFork(steps, 1, origin(1, 1)))).toEqual(['1-2-0', '1-2-1', '1-3-0']);
  expect(afterFork(steps, 1, origin(1, 0))).toHaveLength(5);
});

test('the fork counts only what it did itself', () => {
  const steps = [call(1, 1, 0, { copied: true }), call(1, 1, 1, { copied: true }), call(1, 2, 0)];
  expect(ids(afterFork(steps, 1, null))).toEqual(['1-2-0']);
});

test('a run has the steps that it kept, and not those that it made again', () => {
  const kept = [call(1, 1, 0), call(1, 2, 0), call(1, 2, 1), call(2, 2, 2), call(2, 3, 0)];
  expect(ids(stepsOfRun(kept, 2))).toEqual(['1-1-0', '1-2-0', '1-2-1', '2-2-2', '2-3-0']);
  const again = [call(1, 1, 0), call(1, 1, 1), call(1, 2, 0), call(2, 1, 0), call(2, 2, 0)];
  expect(ids(stepsOfRun(again, 2))).toEqual(['2-1-0', '2-2-0']);
  expect(ids(stepsOfRun(again, 1))).toEqual(['1-1-0', '1-1-1', '1-2-0']);
});

test('figures have the subtasks of the steps that count, and no others', () => {
  const before = call(1, 1, 1, { childTaskId: 'task_before' });
  const after = call(1, 2, 1, { childTaskId: 'task_after' });
  const steps = [call(1, 1, 0), before, call(1, 2, 0), after];
  const timelines = new Map([
    ['task_1', steps],
    ['task_before', [call(1, 1, 0), call(1, 2, 0)]],
    ['task_after', [call(1, 4, 0)]],
  ]);
  const found = figuresOf('task_1', afterFork(steps, 1, origin(1, 1)), timelines, Date.now());
  expect(found).toMatchObject({ costUsd: 0.00004, modelCalls: 2, workedMs: 1000 });
});
