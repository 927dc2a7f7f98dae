import type { AccountApprovals } from '@rota/sdk';
import { Check, Field, Input } from '../ui/Field';
import { Notice } from '../ui/Notice';
import type { Form } from './form';
import { strings } from './strings';

interface FieldsProps {
  form: Form;
  disabled: boolean;
  onChange: (changes: Partial<Form>) => void;
}

const described = (name: string, does: string) => (
  <>
    {name}
    <span className="block small soft">{does}</span>
  </>
);

/** Who approves. A personal account has one person, so it does not have these. */
export function ApprovalFields({
  form,
  stored,
  disabled,
  onChange,
}: FieldsProps & { stored: AccountApprovals }) {
  return (
    <section className="card" aria-labelledby="approvals">
      <div className="card-head">
        <h3 id="approvals">{strings.approvals}</h3>
      </div>
      <div className="card-pad stack-4">
        <fieldset className="stack" disabled={disabled}>
          <legend className="label legend">{strings.approvers}</legend>
          {(['named', 'anyone'] as const).map((each) => (
            <Check
              key={each}
              type="radio"
              name="approvers"
              checked={form.approvers === each}
              onChange={() => onChange({ approvers: each })}
              label={described(strings[each], strings[`${each}Does`])}
            />
          ))}
        </fieldset>
        <Check
          disabled={disabled}
          checked={form.secondPerson}
          onChange={(event) => onChange({ secondPerson: event.target.checked })}
          label={described(strings.secondPerson, strings.secondPersonDoes)}
        />
        {stored.secondPerson && !form.secondPerson && (
          <Notice tone="wait">{strings.keepsWaiting}</Notice>
        )}
      </div>
    </section>
  );
}

/** Above which budget a run waits. */
export function LimitFields({
  form,
  disabled,
  error,
  onChange,
}: FieldsProps & { error: string | undefined }) {
  return (
    <section className="card" aria-labelledby="limit">
      <div className="card-head">
        <h3 id="limit">{strings.limit}</h3>
      </div>
      <div className="card-pad stack-4">
        <Check
          disabled={disabled}
          checked={form.limited}
          onChange={(event) => onChange({ limited: event.target.checked })}
          label={described(strings.limited, strings.limitedDoes)}
        />
        {form.limited && (
          <Field label={strings.above} kind={strings.amount} error={error}>
            {(control) => (
              <Input
                {...control}
                className="input-amount"
                inputMode="decimal"
                autoComplete="off"
                disabled={disabled}
                value={form.limit}
                onChange={(event) => onChange({ limited: true, limit: event.target.value })}
              />
            )}
          </Field>
        )}
      </div>
    </section>
  );
}
