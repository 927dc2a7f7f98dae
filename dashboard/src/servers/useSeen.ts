import { type RefObject, useEffect, useRef } from 'react';
import { cover, covers, type Slice } from './seen';

/** The part of the window that no bar covers. */
function opening(): Slice {
  const edge = (selector: string) => document.querySelector(selector)?.getBoundingClientRect();
  const top = edge('.topbar')?.bottom ?? 0;
  const bar = edge('.tabbar');
  const foot = edge('.changed-foot');
  const bottom = bar?.height ? bar.top : innerHeight;
  return { from: Math.max(0, top), to: Math.min(bottom, foot?.top ?? bottom) };
}

/**
 * Calls `onSeen` once all of an element has been on screen. Another `key` starts again: it stands
 * for the content.
 */
export function useSeen(key: string, onSeen: () => void): RefObject<HTMLDivElement | null> {
  const ref = useRef<HTMLDivElement>(null);
  const latest = useRef(onSeen);
  useEffect(() => {
    latest.current = onSeen;
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: other content has to be seen again.
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    let seen: Slice[] = [];
    let height = 0;
    let frame = 0;
    const stop = new AbortController();
    const look = () => {
      frame = 0;
      if (document.visibilityState !== 'visible' || stop.signal.aborted) return;
      const box = element.getBoundingClientRect();
      // Another width moves lines to other places, so that what was seen there says nothing.
      if (Math.abs(box.height - height) > 1) seen = [];
      height = box.height;
      const { from, to } = opening();
      seen = cover(seen, {
        from: Math.max(0, from - box.top),
        to: Math.min(height, to - box.top),
      });
      if (height > 0 && covers(seen, height)) {
        stop.abort();
        latest.current();
      }
    };
    const schedule = () => {
      frame ||= requestAnimationFrame(look);
    };
    const sizes = new ResizeObserver(schedule);
    sizes.observe(element);
    const { signal } = stop;
    addEventListener('scroll', schedule, { passive: true, capture: true, signal });
    addEventListener('resize', schedule, { signal });
    document.addEventListener('visibilitychange', schedule, { signal });
    schedule();
    return () => {
      stop.abort();
      sizes.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [key]);
  return ref;
}
