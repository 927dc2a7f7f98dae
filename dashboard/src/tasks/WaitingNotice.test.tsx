import type { MeResponse, Review, Task } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { keys } from '../api/keys';
import { reviewQuery } from './queries';
import { WaitingNotice } from './WaitingNotice';

vi.mock('@tanstack/react-router', () => ({ Link: 'a' }));
vi.mock('../shell/account', () => ({ useAccount: () => 'acct_1' }));
vi.mock('../review/origin', () => ({ useFromHere: () => ({}) }));
afterEach(cleanup);

const expiresAt = new Date(Date.now() + 3_600_000).toISOString();

test.each([
  [true, null, 'Waits for you', 'it is cancelled in'],
  [false, expiresAt, 'Waits for an approver', 'it fails in'],
])('who can decide (approver: %s), and what happens without a decision', (...row) => {
  const [approver, deadline, title, outcome] = row;
  const cache = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  cache.setQueryData(keys.me, { account: { approver } } as MeResponse);
  const task = { id: 'task_1', deadline } as Task;
  const review = { state: 'pending', expiresAt } as Review;
  cache.setQueryData(reviewQuery(task.id).queryKey, { review } as never);
  render(
    <QueryClientProvider client={cache}>
      <WaitingNotice task={task} />
    </QueryClientProvider>,
  );
  expect(screen.getByText(title)).toBeDefined();
  expect(screen.getByText(new RegExp(`Without a decision, ${outcome}`))).toBeDefined();
});
