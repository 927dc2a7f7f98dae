import type { Task, TimelineStep } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId } from 'react';
import { useAccount } from '../shell/account';
import { total, union } from '../tasks/folding';
import { Output } from '../tasks/Output';
import { isMoving, taskQuery, timelineQuery } from '../tasks/queries';
import { StepName } from '../tasks/StepName';
import { intervalsOf, rowsOf, type Timelines } from '../tasks/timelineRows';
import { Facts } from '../ui/Facts';
import { count, duration } from '../ui/format';
import { Loading } from '../ui/Loading';
import { Money } from '../ui/Money';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { strings } from './strings';

function Figures({ task, steps }: { task: Task; steps: TimelineStep[] | undefined }) {
  // What a fork took from the original was made and paid for there.
  const own = (steps ?? []).filter((step) => !step.copied);
  const { work } = intervalsOf(new Map([[task.id, own]]), Date.now());
  const { usage } = task;
  return (
    <Facts
      facts={[
        { name: strings.cost, value: <Money usd={usage.costUsd} fine /> },
        { name: strings.calls, value: count(usage.steps) },
        {
          name: strings.tokens,
          value: `${count(usage.inputTokens)} + ${count(usage.outputTokens)}`,
        },
        { name: strings.time, value: steps ? duration(total(union(work))) : strings.unknown },
      ]}
    />
  );
}

function Steps({ id, steps }: { id: string; steps: TimelineStep[] }) {
  const heading = useId();
  const timelines: Timelines = new Map([[id, steps]]);
  const rows = rowsOf(id, timelines, () => false);
  return (
    <section className="card" aria-labelledby={heading}>
      <div className="card-head">
        <h3 id={heading}>{strings.steps}</h3>
        <span className="push faint small">{strings.total(steps.length)}</span>
      </div>
      <ol className="compare-steps">
        {rows.map(
          (row) =>
            row.kind === 'step' && (
              <li key={row.key} className={row.step.copied ? 'row small faint' : 'row small'}>
                <span className="clip">
                  <StepName row={row} />
                </span>
                <span className="push nowrap faint">
                  {row.step.copied ? strings.copied : <Money usd={row.step.costUsd} fine />}
                </span>
              </li>
            ),
        )}
      </ol>
    </section>
  );
}

/** One of the two runs: what it is, what it cost, what it wrote and how it got there. */
export function RunColumn({ id, name }: { id: string; name: string }) {
  const account = useAccount();
  const heading = useId();
  const { data, error } = useQuery(taskQuery(id));
  const task = data?.task;
  const steps = useQuery(timelineQuery(id, isMoving(task?.status))).data;
  return (
    <section className="stack-6" aria-labelledby={heading}>
      <div className="stack">
        <h2 id={heading}>
          <Link className="link" to="/$account/tasks/$id" params={{ account, id }}>
            {name}
          </Link>
        </h2>
        {task && (
          <p className="row row-wrap small">
            <Status status={task.status} />
            <span className="soft dot-list">
              {task.agentVersion && <span>{strings.version(task.agentVersion)}</span>}
              <span>
                <SafeText>{task.model ?? strings.agentsModel}</SafeText>
              </span>
            </span>
          </p>
        )}
      </div>
      {error && <ErrorNotice error={error} />}
      {!task && !error && <Loading />}
      {task && <Figures task={task} steps={steps} />}
      {task?.output ? <Output task={task} /> : task && <p className="soft">{strings.noOutput}</p>}
      {steps && steps.length > 0 && <Steps id={id} steps={steps} />}
      {steps?.length === 0 && <p className="soft">{strings.noSteps}</p>}
    </section>
  );
}
