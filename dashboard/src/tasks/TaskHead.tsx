import type { Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { agentsQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Facts } from '../ui/Facts';
import { duration, exact, usd } from '../ui/format';
import { Cost, Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { Ago } from '../ui/Time';
import { useClock } from './clock';
import { total, union } from './folding';
import { stillCostsQuery } from './limits';
import { isOpenStatus } from './queries';
import { strings } from './strings';
import { intervalsOf, ownSteps, spentOf, type Timelines } from './timelineRows';

function TaskAgent({ task }: { task: Task }) {
  const account = useAccount();
  const agent = useQuery(agentsQuery).data?.find((each) => each.name === task.assignedAgent);
  if (!task.assignedAgent) return <p className="small faint">{strings.external}</p>;
  return (
    <p className="row small">
      {agent && <AgentMark initials={agent.initials} rank={agent.tier} size="s" />}
      <Link
        className="strong clip"
        to="/$account/agents/$name"
        params={{ account, name: task.assignedAgent }}
      >
        <SafeText>{agent?.displayName ?? task.assignedAgent}</SafeText>
      </Link>
    </p>
  );
}

/** A subtask has no money of its own: the task above it pays, up to the budget of the subtask. */
function StillCosts({ task }: { task: Task }) {
  const { data } = useQuery(stillCostsQuery(task));
  if (data == null) return null;
  const amount = usd(data);
  return task.parentTaskId ? strings.facts.heldAbove(amount) : strings.facts.held(amount);
}

export function TaskFacts({ task, timelines }: { task: Task; timelines: Timelines }) {
  const isOpen = isOpenStatus(task.status);
  const now = useClock(task.status === 'RUNNING' || task.status === 'WAITING_APPROVAL');
  const { work, waits } = intervalsOf(ownSteps(timelines), now);
  const known = timelines.has(task.id);
  const time = (ms: number) => (!known ? strings.unknown : ms ? duration(ms) : strings.noTime);
  const spent = spentOf(task, timelines);
  const own = Number(task.usage.costUsd);
  const { budgetUsd } = task.usage;
  // The service knows time and money only of what it runs.
  if (!budgetUsd) return null;
  return (
    <Facts
      className="facts-task"
      facts={[
        {
          name: isOpen ? strings.facts.cost : strings.facts.total,
          value: <Cost usd={spent} />,
          note: spent > own && strings.facts.withSubtasks(usd(own, 4)),
        },
        {
          name: strings.facts.most,
          value: <Money usd={budgetUsd} />,
          note: isOpen && <StillCosts task={task} />,
        },
        { name: strings.facts.worked, value: time(total(union(work))) },
        { name: strings.facts.waited, value: time(total(union(waits))) },
      ]}
    />
  );
}

function Origin({ task, original }: { task: Task; original: string }) {
  const account = useAccount();
  return (
    <>
      <span>
        <Link className="link" to="/$account/tasks/$id" params={{ account, id: original }}>
          {strings.forkOf}
        </Link>
      </span>
      <span>
        <Link
          className="link"
          to="/$account/compare/$original/$fork"
          params={{ account, original, fork: task.id }}
        >
          {strings.compare}
        </Link>
      </span>
    </>
  );
}

export function TaskHead({ task, children }: { task: Task; children: ReactNode }) {
  const account = useAccount();
  return (
    <div className="task-head">
      <div className="stack">
        <p className="row row-wrap small">
          <Status status={task.status} />
          <span className="soft dot-list">
            <span>
              {task.startedAt ? strings.started : strings.created}{' '}
              <Ago at={task.startedAt ?? task.createdAt} />
            </span>
            {task.finishedAt && (
              <span>
                {strings.ended} <Ago at={task.finishedAt} />
              </span>
            )}
            <span>{strings.run(task.usage.run)}</span>
            {task.queuePosition !== null && <span>{strings.queued(task.queuePosition)}</span>}
            {task.deadline && (
              <span>
                {strings.deadline} {exact(task.deadline)}
              </span>
            )}
            {task.priority > 0 && <span>{strings.priority(task.priority)}</span>}
            {task.parentTaskId && (
              <span>
                <Link
                  className="link"
                  to="/$account/tasks/$id"
                  params={{ account, id: task.parentTaskId }}
                >
                  {strings.subtaskOf}
                </Link>
              </span>
            )}
            {task.forkedFrom && <Origin task={task} original={task.forkedFrom.taskId} />}
          </span>
        </p>
        <h1 className="review-title review-title-l task-title">
          <SafeText>{task.name}</SafeText>
        </h1>
        <TaskAgent task={task} />
      </div>
      {children}
    </div>
  );
}
