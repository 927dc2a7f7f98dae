import { errors, type Review, type ReviewItem, StaleReviewError, type Task } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test, vi } from 'vitest';
import { api, exactApi } from '../api/client';
import { reviewQuery } from './data';
import { useReview } from './useReview';

const item = {
  id: 'a',
  tool: 'reply',
  arguments: { text: 'Hello' },
  decision: null,
} as unknown as ReviewItem;
const waits = {
  number: 1,
  digest: 'ab',
  state: 'pending',
  gate: 'tool',
  items: [item],
  history: [],
} as unknown as Review;
const task = { id: 'task_1' } as Task;

/** A review on screen. */
function open(review: Review) {
  const cache = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  cache.setQueryData(reviewQuery('task_1').queryKey, { task, review });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={cache}>{children}</QueryClientProvider>
  );
  return renderHook(() => useReview('task_1'), { wrapper }).result;
}

/** The service refuses the approval, and then says that `next` waits. */
async function refused(error: Error, next: Review) {
  vi.spyOn(exactApi.tasks, 'approve').mockRejectedValue(error);
  const read = vi.spyOn(exactApi.tasks, 'review').mockResolvedValue(next);
  vi.spyOn(api.tasks, 'get').mockResolvedValue(task);
  const result = open(waits);
  act(() => result.current.approval.mutate());
  await waitFor(() => expect(result.current.approval.error).toBe(error));
  await waitFor(() => expect(read).toHaveBeenCalled());
  return result;
}

test('a decision about a review that was replaced shows the new one', async () => {
  const next = { ...waits, number: 2, digest: 'cd' };
  const result = await refused(new StaleReviewError('It does not match.'), next);
  await waitFor(() => expect(result.current.data?.review.number).toBe(2));
  expect(result.current.replaced?.refused).toBe(true);
});

test.each([
  ['another conflict', new errors.ConflictError('Its tool server was disconnected.')],
  ['a review that has expired', new StaleReviewError('Its review has expired.')],
])('%s is not taken for a review that was replaced', async (_, error) => {
  const result = await refused(error, waits);
  expect(result.current.replaced).toBeNull();
});

test('undoing all edits of a call leaves those of the other calls', () => {
  const result = open({ ...waits, items: [item, { ...item, id: 'b' }] });
  for (const { item, fields } of result.current.calls) {
    act(() => fields[0] && result.current.edit(item.id, fields[0], { text: 'Bye' }));
  }
  expect(result.current.editCount).toBe(2);
  act(() => result.current.undoAll('a'));
  expect(result.current.calls.map(({ edits }) => Object.keys(edits).length)).toEqual([0, 1]);
  act(() => result.current.discardEdits());
});
