import { type RefObject, useEffect, useRef, useState } from 'react';

/** Long enough that a second click, meant for what was here before, does not decide this. */
const SETTLE_MS = 600;

/**
 * Whether the end of what is decided has been on screen. `key` names what is decided: something
 * else has to be seen again. What fits on the screen counts at once.
 */
export function useSeen(key: string): { end: RefObject<HTMLDivElement | null>; seen: boolean } {
  const end = useRef<HTMLDivElement>(null);
  const [seenKey, setSeenKey] = useState<string | null>(null);
  useEffect(() => {
    const marker = end.current;
    if (!marker) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const root = marker.closest<HTMLElement>('dialog, .pane-detail');
    // The bar with the buttons lies over the end of the text.
    const covers = (root ?? document).querySelector<HTMLElement>('.decide, .dialog-foot');
    const observer = new IntersectionObserver(
      (entries) => {
        clearTimeout(timer);
        if (entries.at(-1)?.isIntersecting) timer = setTimeout(() => setSeenKey(key), SETTLE_MS);
      },
      { root, rootMargin: `0px 0px -${covers?.offsetHeight ?? 0}px 0px` },
    );
    observer.observe(marker);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [key]);
  return { end, seen: seenKey === key };
}
