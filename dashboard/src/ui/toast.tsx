import { type ReactNode, useSyncExternalStore } from 'react';
import { Icon, type IconName } from './Icon';

/** One short message at a time, about something that was just done. */
let current: { message: ReactNode; icon: IconName } | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function toast(message: ReactNode, icon: IconName = 'check'): void {
  show({ message, icon });
  timer = setTimeout(() => show(null), 6_000);
}

function show(next: typeof current): void {
  clearTimeout(timer);
  current = next;
  for (const listener of listeners) listener();
}

export function ToastRegion() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
  return (
    <div role="status" aria-live="polite">
      {shown && (
        <div className="toast">
          <Icon name={shown.icon} />
          <span>{shown.message}</span>
        </div>
      )}
    </div>
  );
}
