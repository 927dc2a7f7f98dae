import type { Event, TaskEvent } from '@rota/sdk';
import { expect, test } from 'vitest';
import { type StepText, withEvent } from './taskText';

const text = (type: 'delta' | 'text', step: number, written: string) =>
  ({ type, run: 1, step, text: written }) as TaskEvent;

const finished = (step: number, kind: 'model' | 'tool') =>
  ({ type: 'step.finished', data: { run: 1, step, kind } }) as unknown as Event;

const after = (...events: TaskEvent[]): StepText | null =>
  events.reduce<StepText | null>(withEvent, null);

test('additions are joined, and a whole text replaces them', () => {
  const begun = [text('delta', 1, 'Half of '), text('delta', 1, 'a text')];
  expect(after(...begun)).toEqual({ run: 1, step: 1, text: 'Half of a text', writes: true });
  const again = text('text', 1, 'Another');
  expect(after(...begun, again)?.text).toBe('Another');
});

test('a new step starts with an empty text, and an earlier one does not come back', () => {
  const shown = after(text('delta', 1, 'One'), text('delta', 2, 'Two'), text('text', 1, 'One'));
  expect(shown).toEqual({ run: 1, step: 2, text: 'Two', writes: true });
});

test('only the end of the model call ends the writing', () => {
  const shown = after(text('delta', 3, 'Three'));
  const tool = finished(3, 'tool');
  const model = finished(3, 'model');
  expect(withEvent(shown, tool)?.writes).toBe(true);
  expect(withEvent(shown, model)?.writes).toBe(false);
});
