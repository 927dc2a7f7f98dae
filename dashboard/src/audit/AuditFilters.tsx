import type { ReactNode } from 'react';
import { Field, Input, Select } from '../ui/Field';
import type { AuditFilter } from './filter';
import { choices, strings } from './strings';
import type { Person } from './usePeople';

/** A choice of one value, or of none. A value that only the URL knows stays chosen. */
function Choice({
  label,
  none,
  value,
  options,
  onChoose,
}: {
  label: string;
  none: string;
  value: string | undefined;
  options: [value: string, label: string][];
  onChoose: (value: string | undefined) => void;
}) {
  const isKnown = !value || options.some(([each]) => each === value);
  return (
    <Field label={label}>
      {(control) => (
        <Select
          {...control}
          value={value ?? ''}
          onChange={(event) => onChoose(event.target.value || undefined)}
        >
          <option value="">{none}</option>
          {!isKnown && <option value={value}>{value}</option>}
          {options.map(([each, name]) => (
            <option key={each} value={each}>
              {name}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

export function AuditFilters({
  filter,
  people,
  onChange,
  children,
}: {
  filter: AuditFilter;
  people: Person[];
  onChange: (change: AuditFilter) => void;
  children?: ReactNode;
}) {
  const day = (name: 'from' | 'to') => (
    <Field label={strings[name]}>
      {(control) => (
        <Input
          {...control}
          type="date"
          value={filter[name] ?? ''}
          onChange={(event) => onChange({ [name]: event.target.value || undefined })}
        />
      )}
    </Field>
  );
  return (
    <search className="audit-filters">
      <Choice
        label={strings.what}
        none={strings.anything}
        value={filter.action}
        options={choices.map(({ actions, label }) => [actions, label])}
        onChoose={(action) => onChange({ action })}
      />
      <Choice
        label={strings.who}
        none={strings.anyActor}
        value={filter.actor}
        options={Object.entries(strings.actors)}
        onChoose={(actor) => onChange({ actor })}
      />
      <Choice
        label={strings.person}
        none={strings.anyPerson}
        value={filter.user}
        options={people.map(({ id, name }) => [id, name])}
        onChoose={(user) => onChange({ user })}
      />
      <Resource key={filter.resource} value={filter.resource} onChange={onChange} />
      {day('from')}
      {day('to')}
      {children}
    </search>
  );
}

/** Applied with Enter, or when another field is chosen. */
function Resource({
  value = '',
  onChange,
}: {
  value: string | undefined;
  onChange: (change: AuditFilter) => void;
}) {
  const apply = (text: string) => {
    const resource = text.trim();
    if (resource !== value) onChange({ resource: resource || undefined });
  };
  return (
    <Field label={strings.resource}>
      {(control) => (
        <Input
          {...control}
          defaultValue={value}
          placeholder={strings.resourceHint}
          maxLength={255}
          onBlur={(event) => apply(event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Enter' && apply(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
