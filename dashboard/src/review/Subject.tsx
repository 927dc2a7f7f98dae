import type { ForkOrigin, Review, Task } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import type { JsonObject } from '../api/exact';
import { useAccount } from '../shell/account';
import { LazyMarkdown } from '../ui/LazyMarkdown';
import { Cents } from '../ui/Money';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Segments } from '../ui/Tabs';
import { CallCard } from './CallCard';
import { argumentsOf } from './data';
import { prettyJson } from './edits';
import { hiddenIn } from './fields/display';
import { useAgent } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

function Texts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <dl className="texts card">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

const written = (value: string | null): ReactNode =>
  value ? <SafeText>{value}</SafeText> : <span className="faint">{strings.none_}</span>;

function Work({ work }: { work: NonNullable<Review['work']> }) {
  const account = useAccount();
  const agent = useAgent(work.agent);
  const names = strings.workFields;
  return (
    <section aria-labelledby="subject">
      <div className="section-head">
        <h2 id="subject">{strings.work}</h2>
      </div>
      <Texts
        rows={[
          [names.name, written(work.name)],
          [names.description, written(work.description)],
          [names.input, written(work.input)],
          [
            names.agent,
            <>
              {agent.displayName} <code className="faint">{work.agent}</code>, {names.version}{' '}
              {work.version}
            </>,
          ],
          [names.model, <SafeText key="model">{work.model}</SafeText>],
          [names.budget, <Cents key="budget" value={work.budgetCents} />],
          ...(work.outputSchema ? [schemaRow(work.outputSchema as JsonObject)] : []),
          ...(work.forkedFrom ? [originRow(work.forkedFrom, account)] : []),
        ]}
      />
    </section>
  );
}

const schemaRow = (schema: JsonObject): [string, ReactNode] => [
  strings.workFields.outputSchema,
  <pre key="schema" className="source">
    <SafeText>{prettyJson(schema)}</SafeText>
  </pre>,
];

const originRow = ({ taskId, run, step }: ForkOrigin, account: string): [string, ReactNode] => [
  strings.workFields.forkedFrom,
  <span key="origin">
    <Link className="link" to="/$account/tasks/$id" params={{ account, id: taskId }}>
      {strings.original}
    </Link>{' '}
    {step ? strings.originStep(step, run) : strings.originStart}
  </span>,
];

function Output({ text }: { text: string }) {
  const [view, setView] = useState<'text' | 'source'>('text');
  return (
    <section aria-labelledby="subject">
      <div className="section-head">
        <h2 id="subject">{strings.output}</h2>
        <span className="push">
          <Segments
            label={strings.output}
            selected={view}
            onSelect={setView}
            options={[
              { name: 'text', label: strings.outputText },
              { name: 'source', label: strings.outputSource },
            ]}
          />
        </span>
      </div>
      <div className="card card-pad">
        {view === 'text' ? (
          <LazyMarkdown>{text}</LazyMarkdown>
        ) : (
          <pre className="source">
            <SafeText>{text}</SafeText>
          </pre>
        )}
      </div>
    </section>
  );
}

function External({ task }: { task: Task }) {
  const names = strings.workFields;
  return (
    <section aria-labelledby="subject">
      <div className="section-head">
        <h2 id="subject">{strings.texts}</h2>
      </div>
      <Texts
        rows={[
          [names.name, written(task.name)],
          [names.description, written(task.description)],
          [names.input, written(task.input)],
          [names.output, written(task.output)],
        ]}
      />
    </section>
  );
}

export function outputOf(review: Review): string {
  const [item] = review.items;
  const output = item ? argumentsOf(item).output : undefined;
  return typeof output === 'string' ? output : '';
}

/** Everything that the decision is about, whole. */
export function Subject() {
  const { data, state, content } = useReviewView();
  const { review, task } = data;
  const hidden = hiddenInReview(data);
  return (
    <div ref={content} className="subject stack-6">
      {hidden && (
        <Notice tone="wait" title={strings.hiddenTitle}>
          {strings.hiddenText}
        </Notice>
      )}
      {review.work && <Work work={review.work} />}
      {review.gate === 'output' && !task.outputSchema && <Output text={outputOf(review)} />}
      {review.gate === null && <External task={task} />}
      {(review.gate === 'tool' || (review.gate === 'output' && task.outputSchema)) &&
        state.calls.map((call, at) => (
          <CallCard key={call.item.id} call={call} at={at + 1} of={state.calls.length} />
        ))}
    </div>
  );
}

/** Whether anything that is decided contains characters that are not visible. */
export function hiddenInReview({ review, task }: { review: Review; task: Task }): boolean {
  if (review.work) return hiddenIn({ ...review.work } as JsonObject);
  if (review.gate === null) {
    return hiddenIn([task.name, task.description, task.input, task.output]);
  }
  return review.items.some((item) => item.decision === null && hiddenIn(argumentsOf(item)));
}
