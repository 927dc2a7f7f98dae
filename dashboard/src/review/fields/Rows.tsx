import { IconButton } from '../../ui/Button';
import { SafeText } from '../../ui/SafeText';
import type { Field } from '../schema';
import { strings } from '../strings';
import { columnsOf } from './columns';

/** A list of objects as a table. With `onToggle`, rows can be left out and put back. */
export function Rows({
  field,
  leftOut = [],
  onToggle,
}: {
  field: Field;
  leftOut?: number[];
  onToggle?: (row: number) => void;
}) {
  if (field.kind.is !== 'table' || !Array.isArray(field.proposed)) return null;
  const rows = field.proposed;
  const columns = columnsOf(field.kind.columns, rows);
  const kept = rows.filter((_, at) => !leftOut.includes(at));
  const sums = columns.map((column) => column.sum(kept));
  return (
    <div className="card list-card">
      <table className="table">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.key} scope="col" className={column.end ? 'end' : undefined}>
                <SafeText>{column.name}</SafeText>
              </th>
            ))}
            {onToggle && (
              <th scope="col">
                <span className="sr">{strings.change}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => {
            const gone = leftOut.includes(at);
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows of a proposal never move.
              <tr key={at} className={gone ? 'is-removed' : undefined}>
                {columns.map((column) => (
                  <td
                    key={column.key}
                    className={column.end ? 'end num' : undefined}
                    data-label={column.name}
                  >
                    <span className={gone ? 'gone' : undefined}>
                      <SafeText>{column.cell(row)}</SafeText>
                    </span>
                  </td>
                ))}
                {onToggle && (
                  <td className="act">
                    {gone ? (
                      <button type="button" className="undo" onClick={() => onToggle(at)}>
                        {strings.putBack}
                        <span className="sr"> {strings.row(at + 1)}</span>
                      </button>
                    ) : (
                      <IconButton
                        icon="x"
                        size="s"
                        label={strings.leaveOutOf(strings.row(at + 1))}
                        onClick={() => onToggle(at)}
                      />
                    )}
                  </td>
                )}
              </tr>
            );
          })}
        </tbody>
        {sums.some((sum) => sum !== null) && (
          <tfoot>
            <tr>
              {columns.map((column, at) => (
                <td
                  key={column.key}
                  className={column.end ? 'end num strong' : 'soft'}
                  data-label={sums[at] ? strings.sumOf(column.name) : undefined}
                >
                  {sums[at] ?? (at === 0 ? strings.sum : '')}
                </td>
              ))}
              {onToggle && <td />}
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}
