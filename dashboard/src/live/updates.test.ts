import type { Event } from '@rota/sdk';
import { focusManager, QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test, vi } from 'vitest';
import { keys } from '../api/keys';
import { applyEvent, readFailed } from './updates';

const event = { id: 'evt_1', type: 'credits.changed', data: {} } as unknown as Event;

test('many events lead to one fetch at a time, and the last one is not missed', async () => {
  vi.useFakeTimers();
  const cache = new QueryClient();
  let fetches = 0;
  let cancelled = 0;
  const queryFn = async ({ signal }: { signal: AbortSignal }) => {
    fetches += 1;
    signal.addEventListener('abort', () => {
      cancelled += 1;
    });
    await new Promise((done) => setTimeout(done, 100));
    return fetches;
  };
  const stop = new QueryObserver(cache, { queryKey: keys.money, queryFn }).subscribe(() => {});
  await vi.advanceTimersByTimeAsync(150);
  expect(fetches).toBe(1);

  for (let number = 0; number < 50; number += 1) {
    applyEvent(cache, event);
    await vi.advanceTimersByTimeAsync(2);
  }
  expect(fetches).toBe(2);
  await vi.advanceTimersByTimeAsync(1_000);
  // One more fetch for the events that came during the first.
  expect(fetches).toBe(3);
  expect(cancelled).toBe(0);
  expect(cache.getQueryData(keys.money)).toBe(3);
  stop();
  vi.useRealTimers();
});

test.each([
  ['seen', true, 30, 'key.created', keys.apiKeys],
  ['hidden', false, 6, 'session.created', keys.sessions],
])('a page that is %s leaves the rate limit to others', async (...row) => {
  const [, isSeen, perMinute, type, queryKey] = row;
  vi.useFakeTimers();
  focusManager.setFocused(isSeen);
  const cache = new QueryClient();
  let fetches = 0;
  const queryFn = async () => {
    fetches += 1;
    return fetches;
  };
  const stop = new QueryObserver(cache, { queryKey, queryFn }).subscribe(() => {});
  const changed = { ...event, type } as Event;
  const minute = async () => {
    const before = fetches;
    for (let number = 0; number < 1_200; number += 1) {
      applyEvent(cache, changed);
      await vi.advanceTimersByTimeAsync(50);
      // The first changes are seen at once.
      if (before === 0 && number === 30) expect(fetches).toBeGreaterThanOrEqual(29);
    }
    return fetches - before;
  };
  expect(await minute()).toBeLessThanOrEqual(perMinute + 45);
  expect(Math.abs((await minute()) - perMinute)).toBeLessThanOrEqual(1);
  await vi.advanceTimersByTimeAsync(100);
  applyEvent(cache, changed);
  // A screen that is opened in the meantime does not wait.
  expect(cache.getQueryState(queryKey)?.isInvalidated).toBe(true);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(cache.getQueryState(queryKey)?.isInvalidated).toBe(false);
  stop();
  focusManager.setFocused(undefined);
  vi.useRealTimers();
});

test('a changed member makes the members and the own role old, and an invitation only the former', () => {
  const cache = new QueryClient();
  const isOld = (queryKey: readonly unknown[]) => cache.getQueryState(queryKey)?.isInvalidated;
  const members = [...keys.company, 'members', 'acct_1'];
  for (const queryKey of [keys.me, members, keys.apiKeys]) cache.setQueryData(queryKey, {});
  applyEvent(cache, { ...event, type: 'invitation.created' });
  expect([isOld(members), isOld(keys.me), isOld(keys.apiKeys)]).toEqual([true, false, false]);
  applyEvent(cache, { ...event, type: 'member.updated' });
  expect([isOld(members), isOld(keys.me), isOld(keys.apiKeys)]).toEqual([true, true, false]);
});

test('a changed policy makes old what says who can approve, and a rule only the rules', () => {
  const cache = new QueryClient();
  const isOld = (queryKey: readonly unknown[]) => cache.getQueryState(queryKey)?.isInvalidated;
  const parts = [keys.rules, keys.policies, [...keys.task('task_1'), 'review']];
  for (const queryKey of parts) cache.setQueryData(queryKey, {});
  applyEvent(cache, { ...event, type: 'rule.created' });
  expect(parts.map(isOld)).toEqual([true, false, false]);
  applyEvent(cache, { ...event, type: 'policy.updated' });
  expect(parts.map(isOld)).toEqual([true, true, true]);
});

test.each(['mcp.changed', 'mcp.disconnected'])('%s makes an open review old', (type) => {
  const cache = new QueryClient();
  const isOld = (queryKey: readonly unknown[]) => cache.getQueryState(queryKey)?.isInvalidated;
  const review = [...keys.task('task_1'), 'review'];
  for (const queryKey of [review, keys.approvals, keys.rules]) cache.setQueryData(queryKey, {});
  applyEvent(cache, { ...event, type } as Event);
  expect([isOld(review), isOld(keys.approvals), isOld(keys.rules)]).toEqual([true, true, false]);
});

test('what could not be read during an outage is read again, and nothing else', async () => {
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  let isDown = true;
  const reads = { tasks: 0, plan: 0 };
  const queryFn = (name: keyof typeof reads) => async () => {
    reads[name] += 1;
    if (isDown && name === 'tasks') throw new Error('down');
    return name;
  };
  const observe = (name: keyof typeof reads) =>
    new QueryObserver(cache, { queryKey: keys[name], queryFn: queryFn(name) }).subscribe(() => {});
  const stops = [observe('tasks'), observe('plan')];
  await vi.waitFor(() => expect(cache.getQueryState(keys.tasks)?.status).toBe('error'));
  isDown = false;
  readFailed(cache);
  await vi.waitFor(() => expect(cache.getQueryData(keys.tasks)).toBe('tasks'));
  expect(reads).toEqual({ tasks: 2, plan: 1 });
  for (const stop of stops) stop();
});
