import { useEffect, useId, useRef, useState } from 'react';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Check, Input } from '../ui/Field';
import { cents } from '../ui/format';
import { parseDollars, typedDollars } from './amounts';
import { strings } from './strings';

const FIRST_CENTS = 1_000;
const MOST_CENTS = 10_000_000;

/** "Alert me when less than $10.00 is available", with the amount changed in place. */
export function AlertSetting({
  below,
  available,
  disabled,
  onChange,
}: {
  below: number | null;
  available: number;
  disabled: boolean;
  onChange: (below: number | null) => void;
}) {
  const [editing, setEditing] = useState(false);
  const id = useId();
  if (editing) {
    return (
      <AmountForm
        start={below ?? FIRST_CENTS}
        onCancel={() => setEditing(false)}
        onSave={(amount) => {
          setEditing(false);
          onChange(amount);
        }}
      />
    );
  }
  return (
    <div className="row">
      <Check
        id={id}
        label={
          below === null ? (
            strings.alertOff
          ) : (
            <>
              {strings.alertBefore} <b>{cents(below)}</b> {strings.alertAfter}
            </>
          )
        }
        checked={below !== null}
        disabled={disabled}
        onChange={(event) => (event.target.checked ? setEditing(true) : onChange(null))}
      />
      {below !== null && !disabled && (
        <button
          type="button"
          className="undo"
          aria-label={strings.changeAlert}
          onClick={() => setEditing(true)}
        >
          {strings.change}
        </button>
      )}
      {below !== null && available < below && <Badge tone="wait">{strings.isBelow}</Badge>}
    </div>
  );
}

function AmountForm({
  start,
  onSave,
  onCancel,
}: {
  start: number;
  onSave: (cents: number) => void;
  onCancel: () => void;
}) {
  const id = useId();
  const [typed, setTyped] = useState(typedDollars(start));
  const [error, setError] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  return (
    <form
      className="row row-wrap"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        const amount = parseDollars(typed);
        if (amount === null || amount > MOST_CENTS) setError(strings.alertRange);
        else onSave(amount);
      }}
      onKeyDown={(event) => event.key === 'Escape' && onCancel()}
    >
      <label htmlFor={id}>{strings.alertBefore} $</label>
      <Input
        id={id}
        ref={input}
        className="input-amount"
        inputMode="decimal"
        autoComplete="off"
        value={typed}
        aria-invalid={error ? true : undefined}
        aria-describedby={error ? `${id}-error` : undefined}
        onChange={(event) => setTyped(event.target.value)}
      />
      <span>{strings.alertAfter}</span>
      <Button size="s" type="submit">
        {strings.save}
      </Button>
      <Button size="s" look="quiet" onClick={onCancel}>
        {strings.cancel}
      </Button>
      {error && (
        <p className="error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </form>
  );
}
