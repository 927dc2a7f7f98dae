/** What an event makes old. Each screen that is open fetches its part again. */
import type { Event } from '@rota/sdk';
import type { QueryClient } from '@tanstack/react-query';
import { keys } from '../api/keys';

/** Parts that are being fetched again, and whether they have become old once more meanwhile. */
const refreshing = new Map<string, boolean>();
const PAUSE_MS = 50;

/**
 * Fetches a part again. Many events at once lead to one fetch at a time, never to a fetch that
 * cancels the one before, and to pauses as long as a fetch takes.
 */
function refresh(cache: QueryClient, queryKey: readonly unknown[], exact = false): void {
  const name = JSON.stringify([queryKey, exact]);
  if (refreshing.has(name)) {
    refreshing.set(name, true);
    return;
  }
  refreshing.set(name, false);
  const started = performance.now();
  cache.invalidateQueries({ queryKey, exact }).finally(() => {
    const pause = Math.max(PAUSE_MS, performance.now() - started);
    setTimeout(() => {
      const again = refreshing.get(name);
      refreshing.delete(name);
      if (again) refresh(cache, queryKey, exact);
    }, pause);
  });
}

export function applyEvent(cache: QueryClient, event: Event): void {
  const old = (queryKey: readonly unknown[]) => refresh(cache, queryKey);
  const [subject] = event.type.split('.');
  if (subject === 'task') {
    if (event.taskId) old(keys.task(event.taskId));
    old(keys.approvals);
    old(keys.tasks);
    old(keys.money);
    // A screen that shows a schedule shows its tasks.
    old(keys.schedules);
  } else if (subject === 'schedule') {
    // A schedule that is being deleted here has no details to fetch any more.
    const exact = cache.isMutating({ mutationKey: keys.deleteSchedule }) > 0;
    refresh(cache, keys.schedules, exact);
  } else if (subject === 'step') {
    if (event.taskId) old(keys.task(event.taskId));
  } else if (subject === 'credits') {
    old(keys.money);
  } else if (subject === 'subscription') {
    old(keys.plan);
    old(keys.me);
    old(keys.money);
    old(keys.agents);
  } else if (subject === 'mcp') {
    // A server that is being disconnected here has no details to fetch any more.
    const exact = cache.isMutating({ mutationKey: keys.disconnect }) > 0;
    refresh(cache, keys.servers, exact);
    old(keys.approvals);
  } else if (subject === 'key') {
    old(keys.apiKeys);
  } else if (subject === 'session') {
    old(keys.sessions);
  } else if (subject === 'company' || subject === 'member') {
    old(keys.company);
    // The own role or the name of the account may have changed.
    old(keys.me);
  } else if (subject === 'invitation') {
    old(keys.company);
  } else if (subject === 'policy') {
    old(keys.policies);
    // Who can approve what may have changed.
    old(keys.me);
    old(keys.approvals);
    old(['task']);
  } else if (subject === 'rule') {
    old(keys.rules);
  } else if (subject === 'webhook') {
    // A webhook that is being deleted here has no deliveries to fetch any more.
    const exact = cache.isMutating({ mutationKey: keys.deleteWebhook }) > 0;
    refresh(cache, keys.webhooks, exact);
  }
}

/** Fetches what may have changed before the start of the stream: after a cut, that is everything. */
export function startOver(cache: QueryClient, start: 'first' | 'again'): void {
  if (start === 'again') {
    cache.invalidateQueries();
    return;
  }
  for (const queryKey of [keys.approvals, keys.tasks, ['task']]) {
    cache.invalidateQueries({ queryKey });
  }
}
