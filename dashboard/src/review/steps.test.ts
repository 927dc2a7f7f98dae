import type { TimelineStep } from '@rota/sdk';
import { expect, test } from 'vitest';
import { contentOf } from './StepDetail';
import { ledHere } from './steps';

const step = (more: Partial<TimelineStep>) =>
  ({
    id: '1',
    kind: 'tool',
    run: 1,
    name: 'get_ticket',
    server: 'helpdesk',
    outcome: 'ok',
    finishedAt: '2026-11-01T09:00:00Z',
    costUsd: '0',
    arguments: { ticketId: 'T-4821' },
    result: 'The printer is broken.',
    ...more,
  }) as TimelineStep;

test('a step has what it was asked and what it answered', () => {
  const { shown } = ledHere(
    [
      step({}),
      step({ id: '2', kind: 'model', result: { text: '', toolCalls: ['helpdesk__x_y'] } }),
    ],
    2,
  );
  expect(shown[0]?.detail).toEqual({
    asked: { ticketId: 'T-4821' },
    answered: 'The printer is broken.',
  });
  expect(shown[1]).toMatchObject({ words: 'Requested', code: 'x_y', detail: null });
});

test.each([
  [{ structuredContent: { a: 1 }, content: [{ type: 'text', text: 'x' }] }, { a: 1 }],
  [[{ type: 'text', text: '{"a": 1}' }], { a: 1 }],
  ['plain', 'plain'],
  ['{broken', '{broken'],
  [null, null],
])('the answer of a tool is shown without its envelope: %j', (result, content) => {
  expect(contentOf(result)).toEqual(content);
});
