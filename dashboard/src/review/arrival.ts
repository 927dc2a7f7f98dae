/**
 * After a decision the next review appears by itself. Somebody who presses A again means the one
 * before. So A counts only after the person did something else, or after a clear moment.
 */
import { useEffect, useRef } from 'react';

const MOMENT_MS = 2_000;

let acted = true;

function act(event: Event): void {
  if (!(event instanceof KeyboardEvent && event.key.toLowerCase() === 'a')) acted = true;
}

for (const type of ['pointerdown', 'wheel', 'touchmove', 'keydown']) {
  addEventListener(type, act, { capture: true, passive: true });
}

/** What is on screen from now on, the person did not choose. */
export function arrivesAlone(): void {
  acted = false;
}

/** Whether a key is pressed too soon after `key`, the content on screen, appeared by itself. */
export function useTooSoon(key: string): () => boolean {
  const since = useRef({ key, at: 0 });
  useEffect(() => {
    if (since.current.at && since.current.key !== key) arrivesAlone();
    since.current = { key, at: performance.now() };
  }, [key]);
  return () => {
    const now = performance.now();
    if (acted || now - since.current.at >= MOMENT_MS) return false;
    // Each press starts the time again: nobody gets there by pressing on.
    since.current.at = now;
    return true;
  };
}
