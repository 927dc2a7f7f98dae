import type { TimelineStep } from '@rota/sdk';
import { expect, test, vi } from 'vitest';
import { queryClient } from '../api/cache';
import { timelineQuery } from './queries';

const stored = vi.hoisted(() => ({ steps: [] as TimelineStep[], offsets: [] as number[] }));
vi.mock('../api/client', () => ({
  api: {
    tasks: {
      timeline: (_: string, { offset }: { offset: number }) => ({
        firstPage: async () => {
          stored.offsets.push(offset);
          return { steps: stored.steps.slice(offset), total: stored.steps.length };
        },
      }),
    },
  },
}));

const step = (id: string, kind: TimelineStep['kind'], finishedAt: string | null = 'then') =>
  ({ id, kind, finishedAt }) as TimelineStep;

test('what was read is not read again, unless a step took a place before it', async () => {
  const read = async () => {
    stored.offsets = [];
    return (await queryClient.fetchQuery({ ...timelineQuery('task_1', true), staleTime: 0 })).map(
      ({ id }) => id,
    );
  };
  const repeated = [step('review', 'approval'), step('repeated', 'tool'), step('second', 'model')];
  stored.steps = [step('first', 'model'), ...repeated, step('open', 'tool', null)];
  await read();
  expect(stored.offsets).toEqual([0]);
  stored.steps = [...stored.steps.slice(0, -1), step('open', 'tool')];
  expect(await read()).toEqual(['first', 'review', 'repeated', 'second', 'open']);
  expect(stored.offsets).toEqual([2]);
  stored.steps = [step('first', 'model'), step('late', 'tool'), ...repeated];
  expect(await read()).toEqual(['first', 'late', 'review', 'repeated', 'second']);
  expect(stored.offsets).toEqual([2, 0]);
});
