import type { ReactNode } from 'react';

/** A hint for the eye. Screen readers get shortcuts from `aria-keyshortcuts` where it matters. */
export function Kbd({ children }: { children: ReactNode }) {
  return (
    <span className="kbd" aria-hidden="true">
      {children}
    </span>
  );
}
