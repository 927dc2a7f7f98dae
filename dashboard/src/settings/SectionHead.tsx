import type { ReactNode } from 'react';

/** The title of a page of the settings, what it is for, and its one main action. */
export function SectionHead({
  title,
  hint,
  children,
}: {
  title: string;
  hint: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className="row row-wrap">
      <div className="stack-0 grow">
        <h2 className="h-l">{title}</h2>
        <p className="soft">{hint}</p>
      </div>
      {children}
    </div>
  );
}
