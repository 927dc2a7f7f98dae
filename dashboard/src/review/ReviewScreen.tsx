import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { approvalsQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { buttonClass } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { useNow } from '../ui/Time';
import { Background, DecidedItems, Words } from './Background';
import { DecideBar } from './DecideBar';
import { Ended } from './Ended';
import { Notices } from './Notices';
import { OtherWays } from './OtherWays';
import { useFromTask } from './origin';
import { Review } from './Review';
import { ReviewHead } from './ReviewHead';
import { Subject } from './Subject';
import { strings } from './strings';
import { useReview } from './useReview';

/** Where this review is in the inbox, and which one comes after it. */
function usePlace(id: string) {
  const now = useNow();
  const waiting = (useQuery(approvalsQuery).data?.approvals ?? []).filter(
    (each) => each.task.id === id || !each.snoozedUntil || Date.parse(each.snoozedUntil) <= now,
  );
  const at = waiting.findIndex((each) => each.task.id === id);
  const next = waiting[at + 1] ?? waiting.find((each) => each.task.id !== id);
  return { at, total: waiting.length, next: next?.task.id };
}

function Bar({ name, id }: { name: string; id: string }) {
  const account = useAccount();
  const { at, total, next } = usePlace(id);
  const from = useFromTask();
  return (
    <header className="topbar">
      <Link
        className={`${buttonClass({ look: 'quiet' })} btn-icon back`}
        to={from ? '/$account/tasks/$id' : '/$account'}
        params={{ account, id: from ?? '' }}
        aria-label={from ? strings.backToTask : strings.back}
      >
        <Icon name="left" />
      </Link>
      <nav className="crumbs small not-phone" aria-label="Breadcrumb">
        <Link to="/$account" params={{ account }}>
          {strings.inbox}
        </Link>
        <Icon name="right" small />
        <span className="clip" aria-current="page">
          <SafeText>{name}</SafeText>
        </span>
      </nav>
      <p className="only-phone bar-name">
        <span className="strong clip">
          <SafeText>{name}</SafeText>
        </span>
      </p>
      <span className="row push small soft">
        {at >= 0 && <span className="num nowrap">{strings.position(at + 1, total)}</span>}
        {next && (
          <Link
            className={`${buttonClass({ look: 'quiet', size: 's' })} btn-icon`}
            to="/$account/reviews/$id"
            params={{ account, id: next }}
            aria-label={strings.next}
          >
            <Icon name="down" />
          </Link>
        )}
      </span>
    </header>
  );
}

function Page({ id }: { id: string }) {
  const account = useAccount();
  const navigate = useNavigate();
  const state = useReview(id);
  const { next } = usePlace(id);
  const { data, latest, query } = state;
  const from = useFromTask();
  const goOn = () =>
    from
      ? navigate({ to: '/$account/tasks/$id', params: { account, id: from } })
      : next
        ? navigate({ to: '/$account/reviews/$id', params: { account, id: next } })
        : navigate({ to: '/$account', params: { account } });
  if (!data) {
    return (
      <>
        <Bar name={strings.title} id={id} />
        {query.error ? (
          <div className="page page-narrow">
            <ErrorNotice error={query.error} onRetry={query.refetch} />
          </div>
        ) : (
          <Loading />
        )}
      </>
    );
  }
  if (state.ended && latest) {
    return (
      <>
        <Bar name={latest.task.name} id={id} />
        <Ended
          data={latest}
          actions={
            <Link
              className={buttonClass({ look: 'primary' })}
              to={next ? '/$account/reviews/$id' : '/$account'}
              params={{ account, id: next ?? '' }}
            >
              {next ? strings.next : strings.back}
            </Link>
          }
        />
      </>
    );
  }
  return (
    <Review state={state} data={data} page onDone={goOn}>
      <Bar name={data.task.name} id={id} />
      <div className="decision">
        <div className="decision-main review-main stack-6">
          <Notices />
          <ReviewHead />
          <Subject />
          <DecidedItems />
          <OtherWays />
        </div>
        <aside className="decision-side stack-6" aria-label={strings.background}>
          <Words />
          <Background />
        </aside>
      </div>
      <DecideBar onSnoozed={goOn} />
    </Review>
  );
}

/** One review on a page of its own: what a link in a message opens. */
export function ReviewScreen() {
  const { id } = useParams({ from: '/$account/reviews/$id' });
  return (
    <main className="main focus" id="main">
      <Page key={id} id={id} />
    </main>
  );
}
