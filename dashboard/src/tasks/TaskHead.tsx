import type { Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { agentsQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Facts } from '../ui/Facts';
import { duration } from '../ui/format';
import { Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { Ago } from '../ui/Time';
import { useClock } from './clock';
import { total, union } from './folding';
import { isOpenStatus, retryQuery, reviewQuery } from './queries';
import { strings } from './strings';
import { intervalsOf, spentOf, type Timelines } from './timelineRows';

/** The version of the agent, where the API says it: at a run gate, and before a retry. */
function useVersion(task: Task): number | undefined {
  const waits = task.status === 'WAITING_APPROVAL';
  const review = useQuery({ ...reviewQuery(task.id), enabled: waits });
  const retry = useQuery({ ...retryQuery(task.id), enabled: task.status === 'FAILED' });
  if (waits) return review.data?.review.work?.version;
  return retry.data?.retry.options.find((option) => option.from === 'failure')?.version;
}

function TaskAgent({ task }: { task: Task }) {
  const account = useAccount();
  const version = useVersion(task);
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
      {version && <span className="faint nowrap">{strings.version(version)}</span>}
    </p>
  );
}

function TaskFacts({ task, timelines }: { task: Task; timelines: Timelines }) {
  const isOpen = isOpenStatus(task.status);
  const now = useClock(task.status === 'RUNNING' || task.status === 'WAITING_APPROVAL');
  const { work, waits } = intervalsOf(timelines, now);
  const known = timelines.has(task.id);
  const time = (ms: number) => (!known ? strings.unknown : ms ? duration(ms) : strings.noTime);
  const spent = spentOf(task, timelines);
  const { budgetUsd } = task.usage;
  // The service knows time and money only of what it runs.
  if (!budgetUsd) return null;
  return (
    <Facts
      className="facts-task"
      facts={[
        {
          name: isOpen ? strings.facts.cost : strings.facts.total,
          value: <Money usd={spent} fine />,
        },
        {
          name: isOpen ? strings.facts.held : strings.facts.most,
          value: <Money usd={budgetUsd} />,
        },
        { name: strings.facts.worked, value: time(total(union(work))) },
        { name: strings.facts.waited, value: time(total(union(waits))) },
      ]}
    />
  );
}

export function TaskHead({ task, timelines }: { task: Task; timelines: Timelines }) {
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
          </span>
        </p>
        <h1 className="review-title review-title-l task-title">
          <SafeText>{task.name}</SafeText>
        </h1>
        <TaskAgent task={task} />
      </div>
      <TaskFacts task={task} timelines={timelines} />
    </div>
  );
}
