import type { ReactNode } from 'react';

/** Two to four figures side by side. */
export function Facts({
  facts,
  className,
}: {
  facts: { name: string; value: ReactNode; note?: ReactNode }[];
  className?: string;
}) {
  return (
    <dl className={['facts', className].filter(Boolean).join(' ')}>
      {facts.map(({ name, value, note }) => (
        <div className="fact" key={name}>
          <dt>{name}</dt>
          <dd>
            {value}
            {note && <small>{note}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
