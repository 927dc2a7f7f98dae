/** What an event makes old. Each screen that is open fetches its part again. */
import type { Event } from '@rota/sdk';
import type { QueryClient } from '@tanstack/react-query';
import { keys } from '../api/keys';

export function applyEvent(cache: QueryClient, event: Event): void {
  const old = (queryKey: readonly unknown[]) => cache.invalidateQueries({ queryKey });
  const [subject] = event.type.split('.');
  if (subject === 'task') {
    if (event.taskId) old(keys.task(event.taskId));
    old(keys.approvals);
    old(keys.tasks);
    old(keys.money);
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
    cache.invalidateQueries({ queryKey: keys.servers, exact });
    old(keys.approvals);
  } else if (subject === 'key') {
    old(keys.apiKeys);
  } else if (subject === 'session') {
    old(keys.sessions);
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
