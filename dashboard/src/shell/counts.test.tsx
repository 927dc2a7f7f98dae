import type { Approval, MeResponse } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test, vi } from 'vitest';
import { keys } from '../api/keys';
import { useWaitingCount } from './counts';

test('the count follows the end of a snooze, and counts nothing for who cannot approve', () => {
  vi.useFakeTimers();
  const approvals = [null, new Date(Date.now() + 60_000).toISOString()].map(
    (snoozedUntil) => ({ snoozedUntil }) as Approval,
  );
  const cache = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  const asApprover = (approver: boolean) =>
    cache.setQueryData(keys.me, { account: { approver } } as MeResponse);
  cache.setQueryData(keys.approvals, { approvals, total: 2 });
  asApprover(true);
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={cache}>{children}</QueryClientProvider>
  );
  const { result } = renderHook(useWaitingCount, { wrapper });
  expect(result.current).toBe(1);
  act(() => {
    vi.advanceTimersByTime(70_000);
  });
  expect(result.current).toBe(2);
  act(() => {
    asApprover(false);
    vi.advanceTimersByTime(10_000);
  });
  expect(result.current).toBe(0);
  vi.useRealTimers();
});
