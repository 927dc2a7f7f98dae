/**
 * Keyboard shortcuts. They do nothing while somebody types or a dialog is open. One listener
 * serves all of them, so that the A of "G, then A" never approves anything.
 */
import { useEffect, useRef } from 'react';

type Handlers = Record<string, ((event: KeyboardEvent) => void) | undefined>;

const registered = new Set<{ current: Handlers }>();
const PREFIX_MS = 1_500;
let prefix = { key: '', at: 0 };

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    !(target instanceof HTMLInputElement && /^(checkbox|radio|button)$/.test(target.type))
  );
}

function handle(event: KeyboardEvent): void {
  if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented || event.repeat) {
    return;
  }
  if (isTyping(event.target) || document.querySelector('dialog[open], :popover-open')) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const sequence = Date.now() - prefix.at < PREFIX_MS ? `${prefix.key} ${key}` : key;
  prefix = { key: '', at: 0 };
  // The newest first: a part of a screen before the screen.
  for (const handlers of [...registered].reverse()) {
    const handler = handlers.current[sequence];
    if (handler) {
      event.preventDefault();
      handler(event);
      return;
    }
  }
  const starts = [...registered].some((handlers) =>
    Object.keys(handlers.current).some((name) => name.startsWith(`${key} `)),
  );
  if (starts && sequence === key) prefix = { key, at: Date.now() };
}

/** Handlers by key: `a`, `/`, `Escape`; `g i` for G, then I. */
export function useShortcuts(handlers: Handlers): void {
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  useEffect(() => {
    if (!registered.size) addEventListener('keydown', handle);
    registered.add(latest);
    return () => {
      registered.delete(latest);
      if (!registered.size) removeEventListener('keydown', handle);
    };
  }, []);
}
