import { expect, test } from 'vitest';
import type { Message } from './sse';
import { type StepText, withMessage } from './taskText';

const message = (event: string, data: unknown): Message => ({
  id: null,
  event,
  data: JSON.stringify(data),
});

const after = (...messages: Message[]): StepText | null =>
  messages.reduce<StepText | null>(withMessage, null);

test('additions are joined, and a whole text replaces them', () => {
  const begun = [
    message('delta', { run: 1, step: 1, text: 'Half of ' }),
    message('delta', { run: 1, step: 1, text: 'a text' }),
  ];
  expect(after(...begun)).toEqual({ run: 1, step: 1, text: 'Half of a text', writes: true });
  const again = message('text', { run: 1, step: 1, text: 'Another' });
  expect(after(...begun, again)?.text).toBe('Another');
});

test('a new step starts with an empty text, and an earlier one does not come back', () => {
  const shown = after(
    message('delta', { run: 1, step: 1, text: 'One' }),
    message('delta', { run: 1, step: 2, text: 'Two' }),
    message('text', { run: 1, step: 1, text: 'One' }),
  );
  expect(shown).toEqual({ run: 1, step: 2, text: 'Two', writes: true });
});

test('only the end of the model call ends the writing', () => {
  const shown = after(message('delta', { run: 1, step: 3, text: 'Three' }));
  const tool = message('step.finished', { data: { run: 1, step: 3, kind: 'tool' } });
  const model = message('step.finished', { data: { run: 1, step: 3, kind: 'model' } });
  expect(withMessage(shown, tool)?.writes).toBe(true);
  expect(withMessage(shown, model)?.writes).toBe(false);
});
