import { useId } from 'react';
import { fieldProblem } from '../api/client';
import { TextArea } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { lengthOf, MAX_TEXT, nameOf } from './draft';
import { strings } from './strings';
import type { Draft } from './useDraft';

/** The text of the task, large. Below it, the name that it will have. */
export function WorkField({
  draft,
  change,
  onEditName,
  error,
}: {
  draft: Draft;
  change: (change: Partial<Draft>) => void;
  onEditName: () => void;
  error: unknown;
}) {
  const id = useId();
  const length = lengthOf(draft.text);
  const name = draft.name.trim() || nameOf(draft.text);
  const problem = length > MAX_TEXT ? strings.tooLong(MAX_TEXT) : fieldProblem(error, 'input');
  return (
    <div className="field">
      <label className="label label-l" htmlFor={id}>
        {strings.work}
      </label>
      <TextArea
        id={id}
        className="input-l"
        rows={5}
        autoFocus
        value={draft.text}
        placeholder={strings.placeholder}
        aria-invalid={problem ? true : undefined}
        aria-describedby={`${id}-more`}
        onChange={(event) => change({ text: event.target.value })}
      />
      <p className="row small faint" id={`${id}-more`}>
        <span className="row tight">
          {strings.name}
          <button className="undo clip" type="button" onClick={onEditName}>
            {name ? <SafeText>{name}</SafeText> : strings.nameLater}
          </button>
        </span>
        <span className="push num nowrap not-phone">{strings.length(length, MAX_TEXT)}</span>
      </p>
      {problem && (
        <p className="error">
          <Icon name="alert" small />
          {problem}
        </p>
      )}
    </div>
  );
}
