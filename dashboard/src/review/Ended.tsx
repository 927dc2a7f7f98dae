import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useAccount } from '../shell/account';
import { buttonClass } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import type { ReviewData } from './data';
import { endOf, useActorName } from './people';
import { strings } from './strings';

/** The review is decided: by whom, how, and where to go from here. */
export function Ended({ data, actions }: { data: ReviewData; actions?: ReactNode }) {
  const account = useAccount();
  const nameOf = useActorName();
  const { review, task } = data;
  const past = endOf(review, review.number);
  const who = past?.decidedBy ? nameOf(past.decidedBy) : null;
  const how = strings.ended[review.state];
  return (
    <Empty title={who ? strings.endedBy(how, who) : how}>
      {review.summary && (
        <p className="soft">
          <SafeText>{review.summary}</SafeText>
        </p>
      )}
      {past?.items
        .filter((item) => item.edited)
        .map((item) => (
          <p className="small soft" key={item.id}>
            {strings.approvedEdited}: <SafeText>{item.summary}</SafeText>
          </p>
        ))}
      {past?.reason && (
        <p className="soft">
          {strings.endedReason} “<SafeText>{past.reason}</SafeText>”
        </p>
      )}
      {past?.decidedAt && (
        <p className="small faint">
          <Ago at={past.decidedAt} />
        </p>
      )}
      <p className="row row-wrap ended-go">
        {actions}
        <Link
          className={buttonClass({})}
          to="/$account/tasks/$id"
          params={{ account, id: task.id }}
        >
          {strings.openTask}
        </Link>
      </p>
    </Empty>
  );
}
