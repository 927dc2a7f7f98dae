import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { useAccount } from '../shell/account';
import { CrumbBar } from '../shell/TopBar';
import { buttonClass } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { useWide } from '../ui/wide';
import { CancelTask } from './CancelTask';
import { CopyAs } from './CopyAs';
import { FailedCard } from './FailedCard';
import { ForkTask } from './ForkTask';
import { LiveText } from './LiveText';
import { Output } from './Output';
import { isOpenStatus, taskQuery } from './queries';
import { SaveReceipt } from './SaveReceipt';
import { strings } from './strings';
import { TaskFacts, TaskHead } from './TaskHead';
import { TaskTabs } from './TaskTabs';
import { spentOf } from './timelineRows';
import { useTimelines } from './useTimelines';
import { WaitingNotice, WaitingSubtasks } from './WaitingNotice';

export function TaskScreen() {
  const { id } = useParams({ from: '/$account/tasks/$id' });
  // A key of its own: what was opened or typed belongs to this task.
  return <TaskPage key={id} id={id} />;
}

function TaskPage({ id }: { id: string }) {
  const account = useAccount();
  const { data, error, refetch } = useQuery(taskQuery(id));
  const task = data?.task;
  const timeline = useTimelines(id, task?.status);
  const [receiptError, setReceiptError] = useState<Error | null>(null);
  const facts = task && <TaskFacts task={task} timelines={timeline.timelines} />;
  // On a phone, what can be done about a failure comes first.
  const factsLast = !useWide() && task?.status === 'FAILED';
  return (
    <main className="main" id="main">
      <CrumbBar
        to="/$account/tasks"
        parent={strings.tasks}
        here={<span className="mono faint">{id}</span>}
      >
        {task && (
          <span className="not-phone">
            <SaveReceipt id={id} onError={setReceiptError} />
            <CopyAs task={task} />
          </span>
        )}
        {task?.usage.budgetUsd && <ForkTask task={task} />}
        {task && isOpenStatus(task.status) && (
          <CancelTask task={task} spentUsd={spentOf(task, timeline.timelines)} />
        )}
      </CrumbBar>
      <div className="page page-narrow stack-6">
        {error && (
          <ErrorNotice
            error={error}
            onRetry={refetch}
            actions={
              <Link className={buttonClass({})} to="/$account/tasks" params={{ account }}>
                {strings.allTasks}
              </Link>
            }
          />
        )}
        {receiptError && <ErrorNotice error={receiptError} />}
        {!task && !error && <Loading />}
        {task && (
          <>
            <TaskHead task={task}>{!factsLast && facts}</TaskHead>
            {task.status === 'WAITING_APPROVAL' && <WaitingNotice task={task} />}
            {task.status === 'RUNNING' && <WaitingSubtasks task={task} />}
            {task.status === 'RUNNING' && task.assignedAgent && !task.output && (
              <LiveText task={task} />
            )}
            {task.status === 'FAILED' && <FailedCard task={task} />}
            {factsLast && facts}
            {task.output && <Output task={task} />}
            <TaskTabs task={task} timeline={timeline} />
          </>
        )}
      </div>
    </main>
  );
}
