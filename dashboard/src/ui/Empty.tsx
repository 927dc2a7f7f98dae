import type { ReactNode } from 'react';
import { Logo } from './Logo';

/** Says what would be here, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Logo className="figure" />
      <h2>{title}</h2>
      {children}
    </div>
  );
}
