import { type ReactNode, useSyncExternalStore } from 'react';
import { Icon } from './Icon';

/** One short message at a time, about something that was just done. */
let current: ReactNode = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function toast(message: ReactNode): void {
  clearTimeout(timer);
  current = message;
  timer = setTimeout(() => toast(null), 6_000);
  for (const listener of listeners) listener();
}

export function ToastRegion() {
  const message = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
  return (
    <div role="status" aria-live="polite">
      {message && (
        <div className="toast">
          <Icon name="check" />
          <span>{message}</span>
        </div>
      )}
    </div>
  );
}
