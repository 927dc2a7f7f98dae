import { useState } from 'react';
import { Button } from '../../ui/Button';
import { SafeText } from '../../ui/SafeText';
import { prettyJson, resolve, rowsWithout } from '../edits';
import { strings } from '../strings';
import { JsonField } from './controls';
import { kindWords } from './display';
import { FieldName, type FieldProps, YourChange } from './FieldFrame';
import { Rows } from './Rows';

/** A list of objects. Rows can be left out and put back; single cells are edited as JSON. */
export function TableField(props: FieldProps) {
  const { field, edit, onEdit } = props;
  const [asJson, setAsJson] = useState(false);
  if (field.kind.is !== 'table' || !Array.isArray(field.proposed)) return null;
  if (asJson || (edit && 'text' in edit)) {
    return <JsonField {...props} field={{ ...field, kind: { is: 'json' } }} />;
  }
  const leftOut = edit && 'leftOut' in edit ? edit.leftOut : [];
  const resolved = resolve(field, edit);
  const toggle = (at: number) =>
    onEdit({
      leftOut: leftOut.includes(at) ? leftOut.filter((each) => each !== at) : [...leftOut, at],
    });
  const editAsJson = () => {
    if (leftOut.length) onEdit({ text: prettyJson(rowsWithout(field, leftOut)) });
    setAsJson(true);
  };
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
      <Rows field={field} leftOut={leftOut} onToggle={toggle} />
      {'problem' in resolved && <p className="error">{resolved.problem}</p>}
      {leftOut.length > 0 && (
        <YourChange field={field} onEdit={onEdit}>
          {strings.rowsLeftOut(leftOut.length)}
        </YourChange>
      )}
      <div className="field-foot">
        <Button look="quiet" size="s" icon="code" onClick={editAsJson}>
          {strings.editAsJson}
        </Button>
      </div>
    </fieldset>
  );
}
