import type { ReactNode } from 'react';
import { Logo } from './Logo';

/** Says what would be here, and what to do next. */
export function Empty({
  title,
  page,
  children,
}: {
  title: string;
  /** Whether nothing else is on the page, so that this is its title. */
  page?: boolean;
  children?: ReactNode;
}) {
  const Heading = page ? 'h1' : 'h2';
  return (
    <div className="empty">
      <Logo className="figure" />
      <Heading>{title}</Heading>
      {children}
    </div>
  );
}
