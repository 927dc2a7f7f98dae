import type { PastReview, ReviewItem, Task } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Badge } from '../ui/Badge';
import { Icon } from '../ui/Icon';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Shape, type StatusShape } from '../ui/Status';
import { Ago } from '../ui/Time';
import { decisionWord, gateWord } from './decisionWords';
import { reviewQuery } from './queries';
import { strings } from './strings';
import { WaitingNotice } from './WaitingNotice';

const shapes: Partial<Record<string, StatusShape>> = {
  approved: 'done',
  rejected: 'failed',
  expired: 'cancelled',
  cancelled: 'cancelled',
};

function Item({ item }: { item: ReviewItem }) {
  return (
    <li className="stack">
      <p className="row row-wrap wrap">
        <SafeText>{item.summary}</SafeText>
        {item.edited && <Badge tone="accent">{strings.edits(1)}</Badge>}
        {item.decidedBy?.via === 'rule' && (
          <Badge tone="line" icon="rule">
            {strings.decision.byRule}
          </Badge>
        )}
      </p>
      {item.arguments && (
        <details className="opens">
          <summary className="small soft">
            {strings.rawArguments}
            <Icon name="down" small />
          </summary>
          <pre className="raw">
            <SafeText>{JSON.stringify(item.arguments, null, 2)}</SafeText>
          </pre>
        </details>
      )}
    </li>
  );
}

function Past({ review }: { review: PastReview }) {
  return (
    <li className="card">
      <div className="card-head">
        <Shape shape={shapes[review.state] ?? 'waiting'} />
        <h2>
          <SafeText>{decisionWord(review.state, review.decidedBy)}</SafeText>
        </h2>
        <span className="small faint">{gateWord(review.gate)}</span>
        <span className="small faint push">
          <Ago at={review.decidedAt ?? review.requestedAt} />
        </span>
      </div>
      {(review.reason || review.items.length > 0) && (
        <div className="card-pad-s stack">
          {review.reason && (
            <blockquote className="soft">
              <SafeText>{review.reason}</SafeText>
            </blockquote>
          )}
          <ul className="stack">
            {review.items.map((item) => (
              <Item key={item.id} item={item} />
            ))}
          </ul>
        </div>
      )}
    </li>
  );
}

export function ReviewsTab({ task }: { task: Task }) {
  const { data, error } = useQuery(reviewQuery(task.id));
  if (!data) return error ? <ErrorNotice error={error} /> : <Loading />;
  const { review } = data;
  const waits = review.state === 'pending';
  return (
    <div className="tab-panel stack-4">
      {!waits && !review.history.length && <p className="soft">{strings.noReviews}</p>}
      {waits && task.status !== 'WAITING_APPROVAL' && <WaitingNotice task={task} />}
      {waits && task.status === 'WAITING_APPROVAL' && (
        <p className="row small">
          <Shape shape="waiting" />
          {strings.decision.pending}
          {review.requestedAt && (
            <span className="faint">
              <Ago at={review.requestedAt} />
            </span>
          )}
        </p>
      )}
      <ul className="stack-4">
        {review.history.map((past) => (
          <Past key={past.number} review={past} />
        ))}
      </ul>
    </div>
  );
}
