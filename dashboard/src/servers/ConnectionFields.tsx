import { useEffect, useRef } from 'react';
import { fieldProblem } from '../api/client';
import { Button, IconButton } from '../ui/Button';
import { Field, Input, Select } from '../ui/Field';
import { type Connection, type Header, withHeader } from './form';
import { strings } from './strings';

const { form: words } = strings;

export interface FieldsProps<Form extends Connection> {
  form: Form;
  onChange: (changed: Partial<Connection>) => void;
  /** Whether what is entered takes the place of what is stored. */
  replaces?: boolean;
}

/** Whether a message stands at its field, so that the form needs none at its end. */
export const standsAtField = (error: unknown): boolean =>
  Boolean(fieldProblem(error, 'name') || fieldProblem(error, 'url'));

export function AddressFields<Form extends Connection>({
  form,
  onChange,
  error,
}: FieldsProps<Form> & { error: unknown }) {
  const ref = useRef<HTMLDivElement>(null);
  // The button is far below, so the field that is wrong comes back into view.
  useEffect(() => {
    if (standsAtField(error)) ref.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [error]);
  return (
    <div className="form-part" ref={ref}>
      <Field
        label={words.name}
        error={fieldProblem(error, 'name')}
        hint={
          <>
            {words.nameHint} <code>{form.name || 'name'}/tool</code>.
          </>
        }
      >
        {(control) => (
          <Input
            {...control}
            required
            maxLength={32}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={form.name}
            onChange={(event) => onChange({ name: event.target.value })}
          />
        )}
      </Field>
      <Field label={words.url} hint={words.urlHint} error={fieldProblem(error, 'url')}>
        {(control) => (
          <Input
            {...control}
            required
            type="url"
            inputMode="url"
            autoComplete="off"
            placeholder="https://mcp.example.com/mcp"
            value={form.url}
            onChange={(event) => onChange({ url: event.target.value })}
          />
        )}
      </Field>
      <Field label={words.transport}>
        {(control) => (
          <Select
            {...control}
            value={form.transport}
            onChange={(event) =>
              onChange({ transport: event.target.value === 'sse' ? 'sse' : 'streamable-http' })
            }
          >
            <option value="streamable-http">{words.transports['streamable-http']}</option>
            <option value="sse">{words.transports.sse}</option>
          </Select>
        )}
      </Field>
    </div>
  );
}

export function TokenField<Form extends Connection>({
  form,
  onChange,
  replaces,
}: FieldsProps<Form>) {
  return (
    <Field
      label={replaces ? words.newToken : words.token}
      kind={replaces ? undefined : words.optional}
      hint={words.secretHint}
    >
      {(control) => (
        <Input
          {...control}
          type="password"
          autoComplete="off"
          value={form.token}
          onChange={(event) => onChange({ token: event.target.value })}
        />
      )}
    </Field>
  );
}

export function HeaderFields<Form extends Connection>({
  form,
  onChange,
  replaces,
}: FieldsProps<Form>) {
  const change = (id: number, changed: Partial<Header>) =>
    onChange({
      headers: form.headers.map((each) => (each.id === id ? { ...each, ...changed } : each)),
    });
  return (
    <fieldset className="stack">
      <legend className="label legend">
        {replaces ? words.newHeaders : words.headers}{' '}
        {!replaces && <span className="type">{words.optional}</span>}
      </legend>
      {form.headers.map((header) => (
        <div key={header.id} className="header-row">
          <Input
            aria-label={words.headerName}
            placeholder="X-Api-Key"
            autoComplete="off"
            spellCheck={false}
            value={header.name}
            onChange={(event) => change(header.id, { name: event.target.value })}
          />
          <Input
            aria-label={words.headerValue}
            type="password"
            autoComplete="off"
            value={header.value}
            onChange={(event) => change(header.id, { value: event.target.value })}
          />
          <IconButton
            icon="x"
            label={words.removeHeader}
            onClick={() =>
              onChange({ headers: form.headers.filter((each) => each.id !== header.id) })
            }
          />
        </div>
      ))}
      {form.headers.length < 20 && (
        <div>
          <Button
            size="s"
            icon="plus"
            onClick={() => onChange({ headers: withHeader(form.headers) })}
          >
            {words.addHeader}
          </Button>
        </div>
      )}
    </fieldset>
  );
}
