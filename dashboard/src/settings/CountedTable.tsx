import type { ReactNode } from 'react';
import { Badge } from '../ui/Badge';

/** A card with a table and the number of its rows, or a sentence if there are none. */
export function CountedTable({
  id,
  title,
  count,
  none,
  columns,
  action,
  children,
}: {
  id: string;
  title: string;
  count: number;
  none: string;
  columns: string[];
  /** The name of the last column, for screen readers. */
  action: string;
  /** The rows. */
  children: ReactNode;
}) {
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h3 id={id}>{title}</h3>
        {count > 0 && <Badge>{count}</Badge>}
      </div>
      {count === 0 ? (
        <p className="card-pad soft">{none}</p>
      ) : (
        <table className={`table table-${id}`} aria-labelledby={id}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
              <th scope="col">
                <span className="sr">{action}</span>
              </th>
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      )}
    </section>
  );
}
