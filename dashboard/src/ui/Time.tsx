import { type ReactNode, useSyncExternalStore } from 'react';
import { coarse, day, exact, relative } from './format';

/** What happened since the last tick happened just now. */
const TICK_MS = 10_000;

/** One clock for the whole page, so that relative times move together. */
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  if (!listeners.size) now = Date.now();
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, TICK_MS);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

export const useNow = (): number => useSyncExternalStore(subscribe, () => now);

/** A time in words, with the exact one on hover. That one takes long to write, so it waits for it. */
function Stamp({ at, children }: { at: string; children: ReactNode }) {
  return (
    <time
      dateTime={at}
      onPointerEnter={(event) => {
        event.currentTarget.title = exact(at);
      }}
    >
      {children}
    </time>
  );
}

/** "3 min ago". */
export function Ago({ at }: { at: string }) {
  const current = useNow();
  // The clock moves every ten seconds, so what has just happened can be ahead of it.
  const ahead = Date.parse(at) - current;
  return (
    <Stamp at={at}>{relative(at, ahead > 0 && ahead <= TICK_MS ? current + ahead : current)}</Stamp>
  );
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Without the smaller unit. */
const rounded = (ms: number): number => ms - (ms % (ms < DAY_MS ? HOUR_MS : DAY_MS));

/** "6 d 21 h": how long until then, or since then. In brief, "6 d". */
export function Span({ to, from, brief }: { to?: string; from?: string; brief?: boolean }) {
  const at = to ?? from ?? '';
  const current = useNow();
  const ms = Math.max(0, to ? Date.parse(to) - current : current - Date.parse(at));
  return <Stamp at={at}>{coarse(brief && ms >= HOUR_MS ? rounded(ms) : ms)}</Stamp>;
}

export function Day({ at }: { at: string }) {
  return <Stamp at={at}>{day(at)}</Stamp>;
}
