import type { Gate, Task } from '@rota/sdk';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { RejectDialog } from './RejectDialog';
import { ReviewContext, type ReviewView } from './ReviewContext';

afterEach(cleanup);

const task = { usage: { budgetUsd: null } } as Task;
const nothing = () => undefined;

test.each<[Gate | null, number, string, string]>([
  ['tool', 1, 'Continue without this call', 'The agent gets your reason.'],
  ['tool', 2, 'Continue without these calls', 'The agent gets your reason.'],
  ['output', 0, 'Continue with another result', 'The agent gets your reason.'],
  [null, 0, 'Continue the task', 'Your client can read your reason.'],
])('at the gate %s with %i calls, going on is called "%s"', (gate, calls, words, hint) => {
  const state = { calls: Array(calls).fill({}), rejection: { error: null } };
  const view = { state, data: { task, review: { gate } }, busy: false } as unknown as ReviewView;
  render(
    <ReviewContext value={view}>
      <RejectDialog then="stop" reason="" onReason={nothing} onClose={nothing} onReject={nothing} />
    </ReviewContext>,
  );
  fireEvent.click(screen.getByLabelText(new RegExp(`^${words}`)));
  expect(screen.getByText(hint)).toBeDefined();
});
