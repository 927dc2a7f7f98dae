import type { ForkOptions, Task, TimelineStep } from '@rota/sdk';
import { expect, test } from 'vitest';
import { defaultsOf, forkPoints } from './forks';

const call = (run: number, step: number, call: number): TimelineStep =>
  ({
    id: `call-${run}-${step}-${call}`,
    kind: call ? 'tool' : 'model',
    run,
    step,
  }) as TimelineStep;

test('a fork continues after the last call of a step', () => {
  const steps = [call(1, 1, 0), call(1, 1, 1), call(1, 1, 2), call(1, 2, 0)];
  expect([...forkPoints(steps, [1])]).toEqual([['call-1-1-2', 1]]);
});

test('a step that a later run made again counts only there', () => {
  const steps = [call(1, 1, 0), call(1, 1, 1), call(2, 1, 0), call(2, 1, 1)];
  expect([...forkPoints(steps, [1])]).toEqual([['call-2-1-1', 1]]);
});

test('a step that a retry kept counts in the run that made it', () => {
  const steps = [call(1, 1, 0), call(1, 1, 1), call(2, 2, 0), call(2, 2, 1)];
  expect([...forkPoints(steps, [1, 2])]).toEqual([
    ['call-1-1-1', 1],
    ['call-2-2-1', 2],
  ]);
});

test('a fork uses the version and the model of its task, if it still can', () => {
  const options = { versions: [3, 2], models: ['default', 'strong'] } as ForkOptions;
  const task = (agentVersion: number, model: string | null) => ({ agentVersion, model }) as Task;
  expect(defaultsOf(task(2, 'strong'), options)).toEqual({ version: 2, model: 'strong' });
  expect(defaultsOf(task(2, null), options)).toEqual({ version: 2, model: '' });
  expect(defaultsOf(task(1, 'gone'), options)).toEqual({ version: 3, model: 'default' });
});
