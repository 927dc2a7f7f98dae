import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useMemo } from 'react';
import { agentsQuery } from '../api/queries';
import { Quote } from '../newtask/Quote';
import { agentDetailQuery, quoteQuery } from '../newtask/queries';
import { useSubmitKey } from '../newtask/useSubmitKey';
import { Button } from '../ui/Button';
import { Field, Select } from '../ui/Field';
import { cents } from '../ui/format';
import { Cents } from '../ui/Money';
import { ErrorNotice } from '../ui/Notice';
import { LinesField } from './LinesField';
import { type Batch, readBatch } from './lines';
import { Preview } from './Preview';
import { strings } from './strings';

function AgentField({
  agent,
  onAgent,
}: {
  agent: string | undefined;
  onAgent: (name: string | undefined) => void;
}) {
  const { data, error } = useQuery(agentsQuery);
  const agents = [...(data ?? [])].sort((a, b) => a.displayName.localeCompare(b.displayName));
  return (
    <>
      <Field label={strings.agent} kind={strings.agentKind}>
        {(control) => (
          <Select
            {...control}
            value={agents.some(({ name }) => name === agent) ? agent : ''}
            onChange={(event) => onAgent(event.target.value || undefined)}
          >
            <option value="">{strings.chooseAgent}</option>
            {agents.map(({ name, displayName, locked }) => (
              <option key={name} value={name} disabled={locked}>
                {displayName}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {error && <ErrorNotice error={error} />}
    </>
  );
}

/** The agent, the lines, what they become, and what that can cost. */
export function BatchForm({
  agent: chosen,
  onAgent,
  text,
  onText,
  onCreate,
}: {
  agent: string | undefined;
  onAgent: (name: string | undefined) => void;
  text: string;
  onText: (text: string) => void;
  onCreate: (agent: string, batch: Batch) => void;
}) {
  const batch = useMemo(() => readBatch(text), [text]);
  const tasks = batch.lines.filter(({ problem }) => problem === undefined).length;
  const problems = batch.lines.length - tasks;
  const detail = useQuery({ ...agentDetailQuery(chosen ?? ''), enabled: Boolean(chosen) });
  const agent = detail.data?.agent;
  const asked = useQuery({
    ...quoteQuery({ name: 'Quote', agent: agent?.name ?? '', status: 'PENDING' }),
    enabled: Boolean(agent && !agent.locked),
  });
  const quote = asked.data?.quote;
  const isReady = Boolean(agent && !agent.locked && tasks);
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (agent && isReady) onCreate(agent.name, batch);
  };
  useSubmitKey(submit);
  return (
    <form className="handover" onSubmit={submit} noValidate>
      <div className="stack-6">
        <AgentField agent={chosen} onAgent={onAgent} />
        <LinesField text={text} onText={onText} batch={batch} />
        <Preview batch={batch} />
      </div>
      <Quote agent={agent} quote={quote} error={detail.error ?? asked.error} tasks={tasks}>
        <div className="stack not-phone">
          <Button
            look="primary"
            size="l"
            block
            type="submit"
            disabled={!isReady}
            shortcut="⌘↵"
            aria-keyshortcuts="Meta+Enter Control+Enter"
          >
            {strings.create(tasks)}
          </Button>
          {problems > 0 && <p className="tiny faint center">{strings.leftOut(problems)}</p>}
        </div>
      </Quote>
      <div className="decide only-phone start-bar">
        {quote && tasks > 0 && (
          <p className="small">
            <span className="soft">{strings.atMost}</span>{' '}
            <strong>
              <Cents value={quote.budgetCents * tasks} />
            </strong>
            <br />
            <span className="tiny faint">
              {problems > 0 ? strings.leftOut(problems) : strings.each(cents(quote.budgetCents))}
            </span>
          </p>
        )}
        <Button look="primary" type="submit" className="push" disabled={!isReady}>
          {strings.create(tasks)}
        </Button>
      </div>
    </form>
  );
}
