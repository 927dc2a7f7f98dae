import { expect, test } from 'vitest';
import { stillCosts } from './limits';

const usage = (costUsd: string, budgetUsd: string | null) =>
  ({ costUsd, budgetUsd }) as Parameters<typeof stillCosts>[0];
const holds = [
  { taskId: 'parent', heldUsd: '0.210000' },
  { taskId: 'child', heldUsd: '0.040000' },
];

test('a task can still cost what its hold has, which its subtasks have used, too', () => {
  expect(stillCosts(usage('0.02', '1'), ['parent'], holds)).toBe(0.21);
});

test('a subtask can still cost what the holds above it have, up to its own budget', () => {
  expect(stillCosts(usage('0.01', '0.5'), ['child', 'parent'], holds)).toBe(0.25);
  expect(stillCosts(usage('0.01', '0.1'), ['child', 'parent'], holds)).toBe(0.09);
});

test('without its hold, what a task can cost is not known', () => {
  expect(stillCosts(usage('0.01', '1'), ['other'], holds)).toBeNull();
  expect(stillCosts(usage('0', null), ['parent'], holds)).toBeNull();
});
