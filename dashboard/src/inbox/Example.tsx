import { useState } from 'react';
import type { Json } from '../api/exact';
import { type Edits, editedFields, problemsOf, withEdit } from '../review/edits';
import { ArgumentsForm } from '../review/fields/ArgumentsForm';
import { fieldsOf } from '../review/schema';
import { strings as reviewStrings } from '../review/strings';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Notice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { strings } from './strings';

const summary = 'Reply to ticket 48213 and mark it as solved';
const proposed: Json = {
  message:
    'Hello Jonas,\n\nyour October invoice (FS-10-3317, €249.00) was issued on 31 October. I have attached it here again.\n\nBest regards,\nFernhill Support',
  status: 'solved',
  tags: ['invoice', 'billing'],
  copyToCustomer: true,
};
const schema: Json = {
  type: 'object',
  required: ['message', 'status'],
  properties: {
    message: { type: 'string', title: 'Message', maxLength: 2000 },
    status: { type: 'string', enum: ['solved', 'open', 'pending'] },
    tags: { type: 'array', items: { type: 'string' } },
    copyToCustomer: { type: 'boolean', title: 'Send a copy to the address on file' },
  },
};
const fields = fieldsOf(schema, proposed);

/** A review to practise on. It exists only here. */
export function Example({ onClose }: { onClose: () => void }) {
  const [edits, setEdits] = useState<Edits>({});
  const count = editedFields(fields, edits).length;
  const { example } = strings;
  const end = (words: string) => {
    toast(words);
    onClose();
  };
  return (
    <Dialog
      title={summary}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{example.close}</Button>
          <Button look="danger" onClick={() => end(example.rejected)}>
            {example.reject}
          </Button>
          <Button
            look="primary"
            disabled={problemsOf(fields, edits).length > 0}
            onClick={() => end(count ? example.approvedEdits(count) : example.approved)}
          >
            {count ? reviewStrings.approveEdits(count) : example.approve}
          </Button>
        </>
      }
    >
      <Notice tone="accent">{example.note}</Notice>
      <div className="section-head">
        <h3>{reviewStrings.arguments}</h3>
        {count > 0 && <Badge tone="accent">{reviewStrings.edits(count)}</Badge>}
      </div>
      <ArgumentsForm
        fields={fields}
        edits={edits}
        onEdit={(field, edit) => setEdits((before) => withEdit(before, field, edit))}
      />
    </Dialog>
  );
}
