import type { Review, Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { approvalsQuery } from '../api/queries';
import { failsAtDeadline } from '../review/data';
import { useFromHere } from '../review/origin';
import { useCanApprove } from '../review/people';
import { useAccount } from '../shell/account';
import { buttonClass } from '../ui/Button';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Span } from '../ui/Time';
import { reviewQuery } from './queries';
import { strings } from './strings';

function Waits({ task, review, title }: { task: Task; review?: Review; title: string }) {
  const account = useAccount();
  const fromHere = useFromHere();
  return (
    <Notice
      tone="wait"
      title={title}
      actions={
        <Link
          className={buttonClass({ look: 'primary' })}
          to="/$account/reviews/$id"
          params={{ account, id: task.id }}
          state={fromHere}
        >
          {strings.review}
        </Link>
      }
    >
      {review?.summary && (
        <p className="clamp-3">
          <SafeText>{review.summary}</SafeText>
        </p>
      )}
      {review?.expiresAt && (
        <p className="small soft">
          {failsAtDeadline({ task, review }) ? strings.failsIn : strings.cancelsIn}{' '}
          <Span to={review.expiresAt} />.
        </p>
      )}
    </Notice>
  );
}

/** What the task waits for, and the way to decide it. */
export function WaitingNotice({ task }: { task: Task }) {
  const review = useQuery(reviewQuery(task.id)).data?.review;
  const title = strings.waits(useCanApprove());
  return <Waits task={task} review={review} title={title} />;
}

/** A task runs on while a subtask of it waits. Nothing happens until somebody decides that. */
export function WaitingSubtasks({ task }: { task: Task }) {
  const title = strings.subtaskWaits(useCanApprove());
  const waiting = useQuery(approvalsQuery).data?.approvals.filter(
    (approval) => approval.task.parentTaskId === task.id,
  );
  return waiting?.map((approval) => (
    <Waits key={approval.task.id} task={approval.task} review={approval.review} title={title} />
  ));
}
