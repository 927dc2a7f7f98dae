import type { Agent } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test, vi } from 'vitest';
import { api } from '../api/client';
import { useCandidates } from './useCandidates';

test('an agent that fits an earlier text is not chosen for a new one', async () => {
  const agent = (name: string) => ({ name, locked: false }) as Agent;
  vi.spyOn(api.agents, 'catalog').mockResolvedValue([]);
  vi.spyOn(api.agents, 'resolve').mockImplementation((async ({ q }: { q: string }) => ({
    candidates: [{ agent: agent(q.includes('ticket') ? 'responder' : 'clerk'), score: 1 }],
  })) as never);
  const cache = new QueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={cache}>{children}</QueryClientProvider>
  );
  const { result, rerender } = renderHook(
    ({ text, named }: { text: string; named?: string }) => useCandidates(text, named),
    { wrapper, initialProps: { text: 'Pay the bills' } as { text: string; named?: string } },
  );
  await waitFor(() => expect(result.current).toMatchObject({ chosen: 'clerk', settled: true }));
  rerender({ text: 'Answer the ticket' });
  expect(result.current).toMatchObject({ chosen: 'clerk', settled: false });
  await waitFor(() => expect(result.current).toMatchObject({ chosen: 'responder', settled: true }));
  // The person's own choice needs no search.
  rerender({ text: 'Answer the ticket now', named: 'clerk' });
  expect(result.current).toMatchObject({ chosen: 'clerk', settled: true });
});
