import type { Overlap } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { fieldProblem } from '../api/client';
import { agentsQuery } from '../api/queries';
import { Field, Input, Select, TextArea } from '../ui/Field';
import type { ScheduleForm } from './form';
import { strings } from './strings';

const { form: words, presets } = strings;

const FIELDS = ['name', 'agent', 'cron', 'timeZone'];

/** Whether a message stands at its field, so that the form needs none at its end. */
export const standsAtField = (error: unknown): boolean =>
  FIELDS.some((field) => fieldProblem(error, field));

interface Props {
  form: ScheduleForm;
  error: unknown;
  onChange: (changed: Partial<ScheduleForm>) => void;
}

export function ScheduleFields({ form, error, onChange }: Props) {
  const { data: agents } = useQuery(agentsQuery);
  return (
    <div className="form-part">
      <Field label={words.name} error={fieldProblem(error, 'name')}>
        {(control) => (
          <Input
            {...control}
            required
            maxLength={255}
            autoComplete="off"
            value={form.name}
            onChange={(event) => onChange({ name: event.target.value })}
          />
        )}
      </Field>
      <Field label={words.agent} error={fieldProblem(error, 'agent')}>
        {(control) => (
          <Select
            {...control}
            required
            value={form.agent}
            onChange={(event) => onChange({ agent: event.target.value })}
          >
            <option value="">{words.chooseAgent}</option>
            {agents?.map((agent) => (
              <option key={agent.name} value={agent.name} disabled={agent.locked}>
                {agent.displayName}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label={words.work}>
        {(control) => (
          <TextArea
            {...control}
            required
            rows={4}
            maxLength={50_000}
            value={form.work}
            onChange={(event) => onChange({ work: event.target.value })}
          />
        )}
      </Field>
      <TimeFields form={form} error={error} onChange={onChange} />
      <Field label={words.overlap}>
        {(control) => (
          <Select
            {...control}
            value={form.overlap}
            onChange={(event) => onChange({ overlap: event.target.value as Overlap })}
          >
            {Object.entries(strings.overlaps).map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </div>
  );
}

function TimeFields({ form, error, onChange }: Props) {
  const zones = useId();
  return (
    <>
      <Field label={words.often}>
        {(control) => (
          <Select
            {...control}
            value={form.cron in presets ? form.cron : ''}
            onChange={(event) => event.target.value && onChange({ cron: event.target.value })}
          >
            {Object.entries(presets).map(([cron, text]) => (
              <option key={cron} value={cron}>
                {text}
              </option>
            ))}
            <option value="">{strings.custom}</option>
          </Select>
        )}
      </Field>
      <div className="schedule-times">
        <Field label={words.cron} hint={words.cronHint} error={fieldProblem(error, 'cron')}>
          {(control) => (
            <Input
              {...control}
              required
              className="mono"
              maxLength={100}
              autoComplete="off"
              spellCheck={false}
              value={form.cron}
              onChange={(event) => onChange({ cron: event.target.value })}
            />
          )}
        </Field>
        <Field label={words.zone} hint={words.zoneHint} error={fieldProblem(error, 'timeZone')}>
          {(control) => (
            <Input
              {...control}
              required
              list={zones}
              maxLength={100}
              autoComplete="off"
              spellCheck={false}
              value={form.timeZone}
              onChange={(event) => onChange({ timeZone: event.target.value })}
            />
          )}
        </Field>
        <datalist id={zones}>
          {Intl.supportedValuesOf('timeZone').map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
    </>
  );
}
