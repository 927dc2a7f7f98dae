import { useSyncExternalStore } from 'react';
import { coarse, day, exact, relative } from './format';

/** One clock for the whole page, so that relative times move together. */
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 10_000);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export const useNow = (): number => useSyncExternalStore(subscribe, () => now);

/** "3 min ago", with the exact time on hover. */
export function Ago({ at }: { at: string }) {
  const current = useNow();
  const moment = Date.parse(at);
  // The clock moves every ten seconds: what just happened can be a little ahead of it.
  const ahead = moment > current && moment - current < 15_000;
  return (
    <time dateTime={at} title={exact(at)}>
      {relative(at, ahead ? moment : current)}
    </time>
  );
}

/** "6 d 21 h": how long until then, or since then. */
export function Span({ to, from }: { to?: string; from?: string }) {
  const at = to ?? from ?? '';
  const current = useNow();
  const ms = to ? Date.parse(to) - current : current - Date.parse(at);
  return (
    <time dateTime={at} title={exact(at)}>
      {coarse(Math.max(0, ms))}
    </time>
  );
}

export function Day({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {day(at)}
    </time>
  );
}
