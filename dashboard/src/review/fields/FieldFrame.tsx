import type { ReactNode } from 'react';
import { Field as Labelled } from '../../ui/Field';
import { hasHidden, SafeText } from '../../ui/SafeText';
import { type Edit, resolve } from '../edits';
import type { Field } from '../schema';
import { strings } from '../strings';
import { changes, kindWords, type Piece, shownValue } from './display';

export interface FieldProps {
  field: Field;
  edit: Edit | undefined;
  onEdit: (edit: Edit | undefined) => void;
}

export interface Control {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': true | undefined;
}

function Both({ proposed, yours }: { proposed: string; yours: string | null }) {
  return (
    <>
      {strings.proposed}{' '}
      <del>
        <SafeText>{proposed}</SafeText>
      </del>
      {yours !== null && (
        <>
          {' '}
          <span aria-hidden="true">→</span> {strings.yours}{' '}
          <ins>
            <SafeText>{yours}</SafeText>
          </ins>
        </>
      )}
    </>
  );
}

const marks = { same: 'span', removed: 'del', added: 'ins' } as const;

function Pieces({ pieces }: { pieces: Piece[] }) {
  return pieces.map(({ kind, text }, at) => {
    const Mark = marks[kind];
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no identity, and no state.
      <Mark key={at}>
        <SafeText>{text}</SafeText>
      </Mark>
    );
  });
}

/** What the person changed, and the way back. */
export function YourChange({
  field,
  onEdit,
  children,
}: Omit<FieldProps, 'edit'> & { children: ReactNode }) {
  return (
    <div className="was">
      <p className="was-head">
        <span>{strings.yourChange}</span>
        <button
          type="button"
          className="undo"
          aria-label={strings.undoOf(field.name)}
          onClick={() => onEdit(undefined)}
        >
          {strings.undo}
        </button>
      </p>
      <p className="was-text">{children}</p>
    </div>
  );
}

/** "Proposed 13 Nov → yours 16 Nov". A long text shows its pieces that changed. */
export function Was({ field, edit, onEdit }: FieldProps) {
  if (!edit) return null;
  const resolved = resolve(field, edit);
  const proposed = shownValue(field.proposed);
  const yours = 'value' in resolved ? shownValue(resolved.value) : null;
  if (proposed === yours) return null;
  const pieces = yours === null ? null : changes(proposed, yours);
  return (
    <YourChange field={field} onEdit={onEdit}>
      {pieces ? <Pieces pieces={pieces} /> : <Both proposed={proposed} yours={yours} />}
    </YourChange>
  );
}

export function FieldName({ field }: { field: Field }) {
  return (
    <>
      <SafeText>{field.name}</SafeText>{' '}
      {field.titled && (
        <code className="faint tiny">
          <SafeText>{field.key}</SafeText>
        </code>
      )}
    </>
  );
}

/** Ways to send no value at all, where the schema allows it. */
export function Without({ field, edit, onEdit }: FieldProps) {
  const now = edit ? resolve(field, edit) : { value: field.proposed };
  const value = 'value' in now ? now.value : '';
  const canLeaveOut = !field.required && value !== undefined;
  const canBeNull = field.nullable && value !== null;
  if (!canLeaveOut && !canBeNull) return null;
  return (
    <span className="row without">
      {canBeNull && (
        <button type="button" className="undo" onClick={() => onEdit({ value: null })}>
          {strings.setNull}
          <span className="sr">: {field.name}</span>
        </button>
      )}
      {canLeaveOut && (
        <button type="button" className="undo" onClick={() => onEdit({ value: undefined })}>
          {strings.leaveOut}
          <span className="sr">: {field.name}</span>
        </button>
      )}
    </span>
  );
}

/** Label, control, description, difference and problem of one argument. */
export function FieldFrame({
  field,
  edit,
  onEdit,
  wide,
  hint,
  children,
}: FieldProps & { wide?: boolean; hint?: ReactNode; children: (control: Control) => ReactNode }) {
  const resolved = resolve(field, edit);
  const problem = 'problem' in resolved ? resolved.problem : undefined;
  const value = 'value' in resolved ? resolved.value : undefined;
  const texts = (Array.isArray(value) ? value : [value]).filter((each) => typeof each === 'string');
  return (
    <div className={['arg', wide && 'wide', edit && 'edited'].filter(Boolean).join(' ')}>
      <Labelled
        label={<FieldName field={field} />}
        kind={kindWords(field)}
        error={problem}
        hint={
          field.description || hint ? (
            <>
              {field.description && <SafeText>{field.description}</SafeText>} {hint}
            </>
          ) : undefined
        }
      >
        {children}
      </Labelled>
      {texts.some(hasHidden) && (
        <p className="hint marked">
          {strings.showsMarks}{' '}
          <span className="marked-text">
            <SafeText>{texts.join('\n')}</SafeText>
          </span>
        </p>
      )}
      <Was field={field} edit={edit} onEdit={onEdit} />
      <Without field={field} edit={edit} onEdit={onEdit} />
    </div>
  );
}
