import type { NotificationsResponse } from '@rota/sdk';
import { type ReactNode, useId } from 'react';
import { Button } from '../ui/Button';
import { Check, Field, Input, Select } from '../ui/Field';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { type Form, KINDS, toggled } from './form';
import { strings } from './strings';

interface FieldsProps {
  form: Form;
  stored: NotificationsResponse;
  onChange: (changes: Partial<Form>) => void;
}

const described = (name: string, does: string) => (
  <>
    {name}
    <span className="block small soft">{does}</span>
  </>
);

function Card({ title, test, children }: { title: string; test?: ReactNode; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <div className="card-head">
        <h3>{title}</h3>
        {test && <span className="push">{test}</span>}
      </div>
      <div className="card-pad stack-4">{children}</div>
    </section>
  );
}

/** The kinds of messages, and the ways to get each of them. */
export function KindFields({ form, stored, onChange }: FieldsProps) {
  const id = useId();
  const channels = ['mail', 'chat'] as const;
  // Without an address, what is chosen can only be given up.
  const isOff = { mail: !stored.mail.address && form.mail.length === 0, chat: false };
  return (
    <section className="card">
      <table className="kinds" aria-label={strings.what}>
        <thead>
          <tr>
            <th scope="col">{strings.what}</th>
            {channels.map((channel) => (
              <th key={channel} scope="col" id={`${id}-${channel}`}>
                {strings.channels[channel]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {KINDS.map((kind) => (
            <tr key={kind}>
              <th scope="row">
                <span id={`${id}-${kind}`}>{strings.kinds[kind]}</span>
                <span className="block small soft">{strings.kindsDo[kind]}</span>
              </th>
              {channels.map((channel) => (
                <td key={channel}>
                  {/* The label is a larger target for a finger. Row and column are its name. */}
                  <label className="check">
                    <input
                      type="checkbox"
                      aria-labelledby={`${id}-${kind} ${id}-${channel}`}
                      disabled={isOff[channel]}
                      checked={form[channel].includes(kind)}
                      onChange={() => onChange({ [channel]: toggled(form[channel], kind) })}
                    />
                  </label>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function MailFields({ stored, test }: Pick<FieldsProps, 'stored'> & { test: ReactNode }) {
  const { address, transport } = stored.mail;
  const problem = { smtp: null, log: strings.mailLog, off: strings.mailOff }[transport];
  return (
    <Card title={strings.mail} test={address && transport !== 'off' && test}>
      {problem && <Notice>{problem}</Notice>}
      {address ? (
        <p className="small soft">
          <SafeText>{strings.mailTo(address)}</SafeText>
        </p>
      ) : (
        <Notice tone="wait">{strings.noAddress}</Notice>
      )}
    </Card>
  );
}

export function ChatFields({
  form,
  stored,
  error,
  onChange,
  test,
}: FieldsProps & { error?: string; test: ReactNode }) {
  const saved = form.removeUrl ? null : stored.chat.url;
  return (
    <Card title={strings.chat} test={saved && test}>
      <p className="small soft">{strings.chatHint}</p>
      <Field label={strings.service}>
        {(control) => (
          <Select
            {...control}
            value={form.service}
            onChange={(event) => onChange({ service: event.target.value as Form['service'] })}
          >
            {Object.entries(strings.services).map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field
        label={strings.url}
        hint={saved ? <SafeText>{strings.urlKept(saved)}</SafeText> : strings.urlHint}
        error={error}
      >
        {(control) => (
          <Input
            {...control}
            type="url"
            autoComplete="off"
            value={form.url}
            onChange={(event) => onChange({ url: event.target.value })}
          />
        )}
      </Field>
      {saved && (
        <p>
          <Button size="s" onClick={() => onChange({ removeUrl: true, chat: [], url: '' })}>
            {strings.removeUrl}
          </Button>
        </p>
      )}
    </Card>
  );
}

export function ContentFields({ form, onChange }: Omit<FieldsProps, 'stored'>) {
  return (
    <Card title={strings.content}>
      <fieldset className="stack">
        <legend className="sr">{strings.content}</legend>
        {(['full', 'minimal'] as const).map((each) => (
          <Check
            key={each}
            type="radio"
            name="content"
            checked={form.content === each}
            onChange={() => onChange({ content: each })}
            label={described(strings.contents[each], strings.contentsDo[each])}
          />
        ))}
      </fieldset>
    </Card>
  );
}
