import { Field, Input, Select, TextArea } from '../ui/Field';
import { visible } from '../ui/SafeText';
import { type Choice, conditionOf, type Row } from './conditions';
import { strings } from './strings';

const LONG = 60;

interface ValueProps {
  row: Row;
  error: string | undefined;
  onChange: (changes: Partial<Row>) => void;
}

function Exact({ row, error, onChange }: ValueProps) {
  const Control = row.exact.length > LONG || row.exact.includes('\n') ? TextArea : Input;
  return (
    <Field
      label={<span className="sr">{strings.value(visible(row.name))}</span>}
      kind={row.isText ? undefined : strings.asJson}
      error={error}
    >
      {(control) => (
        <Control
          {...control}
          autoComplete="off"
          value={row.exact}
          onChange={(event) => onChange({ exact: event.target.value })}
        />
      )}
    </Field>
  );
}

function OneOf({ row, error, onChange }: ValueProps) {
  return (
    <Field
      label={strings.values(visible(row.name))}
      kind={row.isText ? undefined : strings.asJson}
      error={error}
    >
      {(control) => (
        <TextArea
          {...control}
          rows={3}
          value={row.oneOf}
          onChange={(event) => onChange({ oneOf: event.target.value })}
        />
      )}
    </Field>
  );
}

function Range({ row, error, onChange }: ValueProps) {
  const end = (name: 'least' | 'most', label: string) => (
    <Field label={label} error={name === 'most' ? error : undefined}>
      {(control) => (
        <Input
          {...control}
          inputMode="decimal"
          autoComplete="off"
          value={row[name]}
          onChange={(event) => onChange({ [name]: event.target.value })}
        />
      )}
    </Field>
  );
  return (
    <div className="form form-tight">
      {end('least', strings.least(visible(row.name)))}
      {end('most', strings.most(visible(row.name)))}
    </div>
  );
}

/** A condition for each argument. `tried` says that problems are shown. */
export function ConditionFields({
  rows,
  tried,
  onChange,
}: {
  rows: Row[];
  tried: boolean;
  onChange: (rows: Row[]) => void;
}) {
  return (
    <fieldset className="stack-4">
      <legend className="label legend">{strings.arguments}</legend>
      <p className="small soft">{rows.length ? strings.argumentsHint : strings.takesNone}</p>
      {rows.map((row, at) => {
        const sent = conditionOf(row);
        const error = tried && 'problem' in sent ? sent.problem : undefined;
        const change = (changes: Partial<Row>) =>
          onChange(rows.map((each, place) => (place === at ? { ...each, ...changes } : each)));
        const value = { row, error, onChange: change };
        return (
          <div className="stack condition" key={row.name}>
            <Field
              label={
                <code>
                  <span className="sr">{strings.conditionOf('')}</span>
                  {visible(row.name)}
                </code>
              }
            >
              {(control) => (
                <Select
                  {...control}
                  value={row.choice}
                  onChange={(event) => change({ choice: event.target.value as Choice })}
                >
                  {row.choices.map((choice) => (
                    <option key={choice} value={choice}>
                      {strings.choices[choice]}
                    </option>
                  ))}
                </Select>
              )}
            </Field>
            {row.choice === 'exact' && <Exact {...value} />}
            {row.choice === 'oneOf' && <OneOf {...value} />}
            {row.choice === 'range' && <Range {...value} />}
          </div>
        );
      })}
      {rows.some((row) => row.choice === 'any') && (
        <p className="small soft">{strings.anyWarning}</p>
      )}
    </fieldset>
  );
}
