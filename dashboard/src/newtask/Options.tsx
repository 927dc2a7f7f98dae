import { fieldProblem } from '../api/client';
import { Check, Field, Input, TextArea } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { isBudget, nameOf } from './draft';
import { strings } from './strings';
import type { Draft } from './useDraft';

/** The fields of the options, as the service names them. */
const FIELDS = ['name', 'description', 'priority', 'budgetCents', 'deadline'];

/** Whether the service refused what was typed in the options. */
export const isAboutOptions = (error: unknown): boolean =>
  FIELDS.some((name) => fieldProblem(error, name) !== undefined);

export function Options({
  draft,
  change,
  open,
  onToggle,
  error,
}: {
  draft: Draft;
  change: (change: Partial<Draft>) => void;
  open: boolean;
  onToggle: (open: boolean) => void;
  error: unknown;
}) {
  const problem = (name: string) => fieldProblem(error, name);
  return (
    <details
      className="card more"
      open={open}
      onToggle={(event) => onToggle(event.currentTarget.open)}
    >
      <summary className="row">
        <Icon name="settings" />
        <span className="strong">{strings.options}</span>
        <span className="small faint clip">{strings.optionsHint}</span>
        <Icon name="down" />
      </summary>
      <div className="card-pad form">
        <Field
          className="wide"
          label={strings.nameField}
          hint={strings.nameHint}
          error={problem('name')}
        >
          {(control) => (
            <Input
              {...control}
              name="name"
              maxLength={1_000}
              value={draft.name}
              placeholder={nameOf(draft.text)}
              onChange={(event) => change({ name: event.target.value })}
            />
          )}
        </Field>
        <Field
          className="wide"
          label={strings.description}
          kind={strings.descriptionKind}
          error={problem('description')}
        >
          {(control) => (
            <TextArea
              {...control}
              rows={3}
              maxLength={50_000}
              value={draft.description}
              onChange={(event) => change({ description: event.target.value })}
            />
          )}
        </Field>
        <Field label={strings.priority} kind={strings.priorityKind} error={problem('priority')}>
          {(control) => (
            <Input
              {...control}
              type="number"
              min={0}
              max={10}
              step={1}
              value={draft.priority}
              onChange={(event) =>
                change({
                  priority: Math.max(0, Math.min(10, Math.round(event.target.valueAsNumber) || 0)),
                })
              }
            />
          )}
        </Field>
        <Field
          label={strings.budget}
          kind={strings.budgetKind}
          hint={strings.budgetHint}
          error={isBudget(draft.budget) ? problem('budgetCents') : strings.budgetInvalid}
        >
          {(control) => (
            <Input
              {...control}
              inputMode="decimal"
              autoComplete="off"
              value={draft.budget}
              onChange={(event) => change({ budget: event.target.value })}
            />
          )}
        </Field>
        <Field label={strings.deadline} hint={strings.deadlineHint} error={problem('deadline')}>
          {(control) => (
            <Input
              {...control}
              type="datetime-local"
              value={draft.deadline}
              onChange={(event) => change({ deadline: event.target.value })}
            />
          )}
        </Field>
        <Check
          className="wide"
          checked={draft.waitForGo}
          onChange={(event) => change({ waitForGo: event.target.checked })}
          label={
            <>
              {strings.waitForGo}
              <br />
              <span className="small soft">{strings.waitForGoHint}</span>
            </>
          }
        />
      </div>
    </details>
  );
}
