import { useState } from 'react';
import type { Json } from '../../api/exact';
import { Button, IconButton } from '../../ui/Button';
import { SafeText } from '../../ui/SafeText';
import { resolve } from '../edits';
import { isNumber, isObject, readable } from '../schema';
import { strings } from '../strings';
import { JsonField } from './controls';
import { kindWords, shownValue } from './display';
import { FieldName, type FieldProps } from './FieldFrame';

function Cell({ value, gone, label }: { value: Json | undefined; gone: boolean; label: string }) {
  return (
    <td className={isNumber(value) ? 'end num' : undefined} data-label={label}>
      <span className={gone ? 'gone' : undefined}>
        <SafeText>{shownValue(value)}</SafeText>
      </span>
    </td>
  );
}

/** A list of objects. Rows can be left out and put back; single cells are edited as JSON. */
export function TableField(props: FieldProps) {
  const { field, edit, onEdit } = props;
  const [asJson, setAsJson] = useState(false);
  if (field.kind.is !== 'table' || !Array.isArray(field.proposed)) return null;
  if (asJson || (edit && 'text' in edit)) {
    return <JsonField {...props} field={{ ...field, kind: { is: 'json' } }} />;
  }
  const { columns } = field.kind;
  const leftOut = edit && 'leftOut' in edit ? edit.leftOut : [];
  const resolved = resolve(field, edit);
  const rows = field.proposed;
  const isAmount = (column: string) => rows.every((row) => isObject(row) && isNumber(row[column]));
  const toggle = (at: number) =>
    onEdit({
      leftOut: leftOut.includes(at) ? leftOut.filter((each) => each !== at) : [...leftOut, at],
    });
  return (
    <fieldset className={edit ? 'wide edited' : 'wide'}>
      <legend className="label">
        <FieldName field={field} /> <span className="type">{kindWords(field, leftOut.length)}</span>
      </legend>
      {field.description && (
        <p className="hint">
          <SafeText>{field.description}</SafeText>
        </p>
      )}
      <div className="card list-card">
        <table className="table">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col" className={isAmount(column) ? 'end' : undefined}>
                  <SafeText>{readable(column)}</SafeText>
                </th>
              ))}
              <th scope="col">
                <span className="sr">{strings.change}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {field.proposed.map((row, at) => {
              const gone = leftOut.includes(at);
              return (
                // biome-ignore lint/suspicious/noArrayIndexKey: rows of a proposal never move.
                <tr key={at} className={gone ? 'is-removed' : undefined}>
                  {columns.map((column) => (
                    <Cell
                      key={column}
                      label={readable(column)}
                      gone={gone}
                      value={isObject(row) && Object.hasOwn(row, column) ? row[column] : undefined}
                    />
                  ))}
                  <td className="act">
                    {gone ? (
                      <button type="button" className="undo" onClick={() => toggle(at)}>
                        {strings.putBack}
                        <span className="sr"> {strings.row(at + 1)}</span>
                      </button>
                    ) : (
                      <IconButton
                        icon="x"
                        size="s"
                        label={strings.leaveOutOf(strings.row(at + 1))}
                        onClick={() => toggle(at)}
                      />
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {'problem' in resolved && <p className="error">{resolved.problem}</p>}
      <div className="row row-wrap field-foot">
        {leftOut.length > 0 && (
          <p className="was">
            {strings.rowsLeftOut(leftOut.length)}
            <button
              type="button"
              className="undo"
              aria-label={strings.undoOf(field.name)}
              onClick={() => onEdit(undefined)}
            >
              {strings.undo}
            </button>
          </p>
        )}
        <Button look="quiet" size="s" icon="code" onClick={() => setAsJson(true)}>
          {strings.editAsJson}
        </Button>
      </div>
    </fieldset>
  );
}
