import { type Approval, type DecisionResponse, errors } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test, vi } from 'vitest';
import { exactApi } from '../api/client';
import { keep, kept } from '../shell/kept';
import { useBulk } from './useBulk';

const waits = (id: string) =>
  ({ task: { id }, review: { number: 1, digest: 'ab', items: [] } }) as unknown as Approval;

test('the edits of a review are kept until it is decided together with others', async () => {
  keep('review.task_1', '{}');
  keep('review.task_2', '{}');
  vi.spyOn(exactApi.tasks, 'reject').mockImplementation(async (id) => {
    if (id === 'task_2') throw new errors.PermissionDeniedError('No.');
    return {} as DecisionResponse;
  });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={new QueryClient()}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(() => useBulk(), { wrapper });
  await act(() => result.current.decide([waits('task_1'), waits('task_2')], 'reject', ''));
  expect([...result.current.results]).toEqual([
    ['task_1', true],
    ['task_2', 'No.'],
  ]);
  expect(kept('review.task_1')).toBeNull();
  expect(kept('review.task_2')).toBe('{}');
});
