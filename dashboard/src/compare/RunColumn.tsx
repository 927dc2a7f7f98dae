import type { ForkOrigin, Task, TimelineStep } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId } from 'react';
import { useAccount } from '../shell/account';
import { useClock } from '../tasks/clock';
import { Output } from '../tasks/Output';
import { isOpenStatus, taskQuery } from '../tasks/queries';
import { StepName } from '../tasks/StepName';
import { rowsOf, type StepRow, type Timelines } from '../tasks/timelineRows';
import { useTimelines } from '../tasks/useTimelines';
import { Facts } from '../ui/Facts';
import { count, duration } from '../ui/format';
import { Loading } from '../ui/Loading';
import { Cost, Money } from '../ui/Money';
import { ErrorNotice, Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { afterFork, figuresOf } from './figures';
import { strings } from './strings';

function Figures({
  task,
  counted,
  timelines,
}: {
  task: Task;
  counted: TimelineStep[];
  timelines: Timelines;
}) {
  const now = useClock(isOpenStatus(task.status));
  const figures = figuresOf(task.id, counted, timelines, now);
  return (
    <Facts
      facts={[
        { name: strings.cost, value: <Cost usd={figures.costUsd} /> },
        { name: strings.calls, value: count(figures.modelCalls) },
        {
          name: strings.tokens,
          value: `${count(figures.inputTokens)} + ${count(figures.outputTokens)}`,
        },
        { name: strings.time, value: duration(figures.workedMs) },
      ]}
    />
  );
}

const costOf = ({ step, child }: StepRow) => (child?.loaded ? child.amounts.costUsd : step.costUsd);

function Steps({
  id,
  timelines,
  counted,
}: {
  id: string;
  timelines: Timelines;
  counted: TimelineStep[];
}) {
  const heading = useId();
  const rows = rowsOf(id, timelines, () => false);
  // A decision has no number. It stands beside the calls that it is about.
  const counts = ({ step }: StepRow) => step.step === null || counted.includes(step);
  return (
    <section className="card" aria-labelledby={heading}>
      <div className="card-head">
        <h3 id={heading}>{strings.steps}</h3>
        <span className="push faint small">{strings.total(timelines.get(id)?.length ?? 0)}</span>
      </div>
      <ol className="compare-steps">
        {rows.map(
          (row) =>
            row.kind === 'step' && (
              <li key={row.key} className={counts(row) ? 'row small' : 'row small faint'}>
                <span className="clip">
                  <StepName row={row} />
                </span>
                <span className="push nowrap faint">
                  {row.step.copied ? strings.copied : <Money usd={costOf(row)} fine />}
                </span>
              </li>
            ),
        )}
      </ol>
    </section>
  );
}

/** What the task wrote, or why it wrote nothing. */
function Result({ task }: { task: Task }) {
  return (
    <>
      {task.error && (
        <Notice tone="bad" title={strings.failed}>
          <SafeText>{task.error.message}</SafeText>
        </Notice>
      )}
      {task.output ? (
        <Output task={task} />
      ) : (
        !task.error && (
          <p className="soft">
            {isOpenStatus(task.status) ? strings.noOutputYet : strings.noOutput}
          </p>
        )
      )}
    </>
  );
}

/** One of the two runs: what it is, what it cost, what it wrote and how it got there. */
export function RunColumn({
  id,
  name,
  origin = null,
}: {
  id: string;
  name: string;
  /** Where the other one was forked from this one. */
  origin?: ForkOrigin | null;
}) {
  const account = useAccount();
  const heading = useId();
  const { data, error } = useQuery(taskQuery(id));
  const task = data?.task;
  const { timelines, error: unread } = useTimelines(id, task?.status);
  const steps = timelines.get(id);
  const counted = task && steps ? afterFork(steps, task.usage.run, origin) : [];
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
      {task && steps && <Figures task={task} counted={counted} timelines={timelines} />}
      {task && <Result task={task} />}
      {unread && !error && <ErrorNotice error={unread} />}
      {steps && steps.length > 0 && <Steps id={id} timelines={timelines} counted={counted} />}
      {task && steps?.length === 0 && (
        <p className="soft">{isOpenStatus(task.status) ? strings.noStepsYet : strings.noSteps}</p>
      )}
    </section>
  );
}
