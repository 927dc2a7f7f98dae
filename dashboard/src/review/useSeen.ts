import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { above, firstGap, overlap, type Range, withRange } from './ranges';

/** Long enough that a second click, meant for what was here before, does not decide this. */
const SETTLE_MS = 600;
/** What flies by while somebody jumps to the end has not been on screen. */
const GLANCE_MS = 200;
const LOOK_MS = 50;

export interface Seen {
  /** Goes around everything that is decided. */
  content: RefObject<HTMLDivElement | null>;
  seen: boolean;
  /** Shows the first part that has not been on screen. */
  readOn: () => void;
}

/** Where the content scrolls, and the part of the window that shows it. */
function frameOf(content: HTMLElement): {
  scrolls: HTMLElement | null;
  top: number;
  bottom: number;
} {
  const scrolls = content.closest<HTMLElement>('dialog, .pane-detail');
  const own = scrolls && scrolls.scrollHeight > scrolls.clientHeight ? scrolls : null;
  const place = scrolls ?? document;
  const box = scrolls?.getBoundingClientRect();
  // The bars lie over the content.
  const bar = place.querySelector<HTMLElement>('.topbar')?.getBoundingClientRect();
  const foot = place.querySelector<HTMLElement>('.decide, .dialog-foot')?.getBoundingClientRect();
  return {
    scrolls: own,
    top: Math.max(0, box?.top ?? 0, bar?.bottom ?? 0),
    bottom: Math.min(innerHeight, box?.bottom ?? innerHeight, foot?.top ?? innerHeight),
  };
}

/** A dialog lies over everything that is not in it. */
function isCovered(content: HTMLElement): boolean {
  const dialog = document.querySelector('dialog[open]');
  return !!dialog && !dialog.contains(content);
}

/** Notes which stretches of the content stay on screen, and tells when all of them have. */
class Watch {
  private readonly started = performance.now();
  private glances: (Range & { at: number })[] = [];
  private ranges: Range[] = [];
  private size = { width: 0, height: 0 };

  constructor(readonly content: HTMLElement) {}

  /** Returns whether everything has been on screen. */
  look(): boolean {
    const box = this.content.getBoundingClientRect();
    if (!box.height || document.hidden || isCovered(this.content)) return false;
    // What is still loading takes up room, but nobody can read it.
    if (this.content.querySelector('[data-loading]')) return this.restart();
    const { top, bottom } = frameOf(this.content);
    const now = performance.now();
    const visible = {
      from: Math.max(0, top - box.top),
      to: Math.min(box.height, bottom - box.top),
    };
    this.resized(box, visible.from);
    this.glances.push({ ...visible, at: now });
    // The last glance that is old enough begins the time that counts.
    const first = this.glances.findLastIndex((glance) => glance.at <= now - GLANCE_MS);
    if (first >= 0) {
      this.glances = this.glances.slice(first);
      this.ranges = withRange(this.ranges, overlap(this.glances));
    }
    return now - this.started >= SETTLE_MS && firstGap(this.ranges, box.height) === null;
  }

  private restart(): false {
    this.glances = [];
    this.ranges = [];
    return false;
  }

  private resized({ width, height }: DOMRect, top: number): void {
    if (Math.abs(height - this.size.height) < 1 && width === this.size.width) return;
    this.ranges = width === this.size.width ? above(this.ranges, top) : [];
    this.glances = [];
    this.size = { width, height };
  }

  readOn(): void {
    const box = this.content.getBoundingClientRect();
    const gap = firstGap(this.ranges, box.height);
    if (gap === null) return;
    const { scrolls, top } = frameOf(this.content);
    // A few lines of what was read stay on screen.
    const by = box.top + gap - top - 48;
    (scrolls ?? window).scrollBy({ top: by });
  }
}

/**
 * Whether everything that is decided has been on screen. `key` names what is decided: something
 * else has to be seen again.
 */
export function useSeen(key: string): Seen {
  const content = useRef<HTMLDivElement>(null);
  const watch = useRef<Watch | null>(null);
  const [seenKey, setSeenKey] = useState<string | null>(null);
  useEffect(() => {
    watch.current = null;
    const timer = setInterval(() => {
      const element = content.current;
      if (!element) return;
      // The element may come late, and may be replaced while the decision is the same.
      if (watch.current?.content !== element) watch.current = new Watch(element);
      if (!watch.current.look()) return;
      clearInterval(timer);
      setSeenKey(key);
    }, LOOK_MS);
    return () => clearInterval(timer);
  }, [key]);
  const readOn = useCallback(() => watch.current?.readOn(), []);
  return { content, seen: seenKey === key, readOn };
}
