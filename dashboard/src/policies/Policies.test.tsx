import type { MeResponse, PoliciesResponse, Role } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { RetentionCard } from '../data/RetentionCard';
import { Policies } from './Policies';

vi.mock('@tanstack/react-router', () => ({ Link: 'a' }));
afterEach(cleanup);

const none = { tasks: null, steps: null, events: null, audit: null };
const before = {
  approvals: { approvers: 'named', secondPerson: false, maxCostCents: null },
  retention: none,
  retentionInEffect: none,
} as unknown as PoliciesResponse;
const role: Role = 'owner';
const account = { id: 'acct_1', name: 'Acme', kind: 'company', role };

/** The page, and a function that changes the policies as somebody else does. */
function open(page: ReactNode) {
  const cache = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
  cache.setQueryData(keys.me, { account } as MeResponse);
  cache.setQueryData(keys.policies, before);
  render(<QueryClientProvider client={cache}>{page}</QueryClientProvider>);
  const replace = vi.spyOn(api.policies, 'replace').mockReturnValue(new Promise(() => undefined));
  const save = async () => {
    fireEvent.click(screen.getByRole('button', { name: 'Save' }));
    await waitFor(() => expect(replace).toHaveBeenCalled());
    return replace.mock.lastCall?.[0];
  };
  const meanwhile = (changes: Partial<PoliciesResponse>) =>
    act(() => cache.setQueryData(keys.policies, { ...before, ...changes }));
  return { save, meanwhile };
}

test('saving the policies keeps what somebody else has changed meanwhile', async () => {
  const { save, meanwhile } = open(<Policies />);
  fireEvent.click(screen.getByLabelText(/^Runs with a high budget/));
  meanwhile({ approvals: { ...before.approvals, secondPerson: true } });
  const second = screen.getByLabelText<HTMLInputElement>(/^A second person approves/);
  await waitFor(() => expect(second.checked).toBe(true));
  expect(await save()).toEqual({
    approvals: { approvers: 'named', secondPerson: true, maxCostCents: 500 },
  });
});

test('saving the retention keeps what somebody else has changed meanwhile', async () => {
  const { save, meanwhile } = open(<RetentionCard role={role} />);
  fireEvent.change(screen.getByLabelText(/^Steps/), { target: { value: '30' } });
  meanwhile({ retention: { ...none, tasks: 90 } as PoliciesResponse['retention'] });
  const tasks = screen.getByLabelText<HTMLInputElement>(/^Tasks/);
  await waitFor(() => expect(tasks.value).toBe('90'));
  expect((await save())?.retention).toEqual({ ...none, tasks: 90, steps: 30 });
});
