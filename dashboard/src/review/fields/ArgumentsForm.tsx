import { useState } from 'react';
import { SafeText } from '../../ui/SafeText';
import type { Edit, Edits } from '../edits';
import { type Field, flat, isAbsent } from '../schema';
import { strings } from '../strings';
import {
  ChoiceField,
  JsonField,
  ListField,
  NumberField,
  SeveralField,
  TextField,
  YesNoField,
} from './controls';
import { FieldName } from './FieldFrame';
import { TableField } from './TableField';

interface FormProps {
  fields: Field[];
  edits: Edits;
  onEdit: (field: Field, edit: Edit | undefined) => void;
}

function One({ field, edits, onEdit }: Omit<FormProps, 'fields'> & { field: Field }) {
  const props = {
    field,
    edit: edits[field.id],
    onEdit: (edit: Edit | undefined) => onEdit(field, edit),
  };
  switch (field.kind.is) {
    case 'text':
      return <TextField {...props} />;
    case 'number':
      return <NumberField {...props} />;
    case 'yesno':
      return <YesNoField {...props} />;
    case 'choice':
      return <ChoiceField {...props} />;
    case 'list':
      return <ListField {...props} />;
    case 'several':
      return <SeveralField {...props} />;
    case 'table':
      return <TableField {...props} />;
    case 'json':
      return <JsonField {...props} />;
    case 'group':
      return (
        <fieldset className="wide field-group arg">
          <legend className="label">
            <FieldName field={field} />
          </legend>
          {field.description && (
            <p className="hint">
              <SafeText>{field.description}</SafeText>
            </p>
          )}
          <ArgumentsForm fields={field.kind.fields} edits={edits} onEdit={onEdit} />
        </fieldset>
      );
  }
}

/** The arguments of a call. Fields that are not sent wait behind one line. */
export function ArgumentsForm({ fields, edits, onEdit }: FormProps) {
  const [open, setOpen] = useState(false);
  const shown = fields.filter((field) => !isAbsent(field));
  const absent = fields.filter(isAbsent);
  const opened = open || flat(absent).some(({ id }) => edits[id]);
  return (
    <div className="form">
      {shown.map((field) => (
        <One key={field.id} field={field} edits={edits} onEdit={onEdit} />
      ))}
      {absent.length > 0 && (
        <details
          className="wide"
          open={opened}
          onToggle={(event) => setOpen(event.currentTarget.open)}
        >
          <summary className="small soft">{strings.notSentFields(absent.length)}</summary>
          {opened && (
            <div className="form absent">
              {absent.map((field) => (
                <One key={field.id} field={field} edits={edits} onEdit={onEdit} />
              ))}
            </div>
          )}
        </details>
      )}
    </div>
  );
}
