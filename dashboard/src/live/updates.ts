/** What an event makes old. Each screen that is open fetches its part again. */
import type { Event } from '@rota/sdk';
import { focusManager, type QueryClient } from '@tanstack/react-query';
import { keys } from '../api/keys';

/** A part that was fetched because of events. */
interface Part {
  /** It is being fetched, or the pause after that is not over. */
  busy: boolean;
  /** It has become old once more meanwhile. */
  again: boolean;
  /** Its fetches so far, one per step, last until this time. */
  usedUntil: number;
}

const parts = new Map<string, Part>();
const PAUSE_MS = 50;
/** So many fetches of a part can follow each other quickly. */
const QUICK = 40;
/** After those, one per step: the account's other clients need its rate limit, too. */
const STEP_MS = 2_000;
const HIDDEN_STEP_MS = 10_000;

/**
 * Fetches a part again. Many events at once lead to one fetch at a time, never to a fetch that
 * cancels the one before, and to pauses as long as a fetch takes, or longer if events keep coming.
 */
function refresh(cache: QueryClient, queryKey: readonly unknown[], exact = false): void {
  const name = JSON.stringify([queryKey, exact]);
  const part = parts.get(name) ?? { busy: false, again: false, usedUntil: 0 };
  parts.set(name, part);
  if (part.busy) {
    part.again = true;
    // A screen that is opened during the pause, or seen again, does not wait for its end.
    cache.invalidateQueries({ queryKey, exact, refetchType: 'none' });
    return;
  }
  part.busy = true;
  const started = performance.now();
  const step = focusManager.isFocused() ? STEP_MS : HIDDEN_STEP_MS;
  part.usedUntil = Math.max(part.usedUntil, started) + step;
  cache.invalidateQueries({ queryKey, exact }).finally(() => {
    const now = performance.now();
    // A part that was last fetched while the page was hidden may have used more than it can.
    const rest = Math.min(part.usedUntil - (QUICK - 1) * step - now, step);
    const pause = Math.max(PAUSE_MS, now - started, rest);
    setTimeout(() => {
      const { again } = part;
      part.busy = false;
      part.again = false;
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
    // An open review says whether its tools are accepted.
    old(['task']);
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

/** Fetches again what could not be read, now that the service answers again. */
export function readFailed(cache: QueryClient): void {
  cache.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' });
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
