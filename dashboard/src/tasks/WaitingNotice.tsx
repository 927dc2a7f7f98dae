import type { Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { buttonClass } from '../ui/Button';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Span } from '../ui/Time';
import { reviewQuery } from './queries';
import { strings } from './strings';

/** What the task waits for, and the way to decide it. */
export function WaitingNotice({ task }: { task: Task }) {
  const account = useAccount();
  const review = useQuery(reviewQuery(task.id)).data?.review;
  return (
    <Notice
      tone="wait"
      title={strings.waits}
      actions={
        <Link
          className={buttonClass({ look: 'primary' })}
          to="/$account/reviews/$id"
          params={{ account, id: task.id }}
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
          {strings.cancelsIn} <Span to={review.expiresAt} />.
        </p>
      )}
    </Notice>
  );
}
