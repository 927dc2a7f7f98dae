import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { buttonClass } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Background, DecidedItems, Words } from './Background';
import { DecideBar } from './DecideBar';
import type { ReviewData } from './data';
import { Ended } from './Ended';
import { Notices } from './Notices';
import { useAgent } from './people';
import { Review } from './Review';
import { ReviewHead } from './ReviewHead';
import { Subject } from './Subject';
import { strings } from './strings';
import { useReview } from './useReview';

function PaneBar({ task }: { task: ReviewData['task'] }) {
  const account = useAccount();
  const name = task.assignedAgent;
  const agent = useAgent(name);
  return (
    <header className="topbar">
      <p className="row small soft">
        <AgentMark initials={agent.initials} rank={agent.rank} size="s" />
        {name ? (
          <Link className="strong nowrap" to="/$account/agents/$name" params={{ account, name }}>
            <SafeText>{agent.displayName}</SafeText>
          </Link>
        ) : (
          <span className="strong">{agent.displayName}</span>
        )}
        <span className="faint">{strings.inTask}</span>
        <Link className="link clip" to="/$account/tasks/$id" params={{ account, id: task.id }}>
          <SafeText>{task.name}</SafeText>
        </Link>
      </p>
      <Link
        className={`${buttonClass({ look: 'quiet', size: 's' })} push`}
        to="/$account/reviews/$id"
        params={{ account, id: task.id }}
      >
        <Icon name="ext" small />
        {strings.open}
      </Link>
    </header>
  );
}

/** A review beside the list of the inbox. */
export function ReviewPane({
  id,
  quiet,
  onDone,
  nextAction,
}: {
  id: string;
  /** Several reviews are selected, and the keys are about them. */
  quiet: boolean;
  onDone: () => void;
  nextAction?: ReactNode;
}) {
  const state = useReview(id);
  const { data, latest, query } = state;
  if (!data) {
    return query.error ? (
      <div className="review">
        <ErrorNotice error={query.error} onRetry={query.refetch} />
      </div>
    ) : (
      <Loading />
    );
  }
  if (state.ended && latest) return <Ended data={latest} actions={nextAction} />;
  return (
    <Review state={state} data={data} page={false} onDone={onDone}>
      <PaneBar task={data.task} />
      <div className="review review-main">
        <Notices />
        <ReviewHead />
        <Subject />
        <DecidedItems />
        <Words />
        <Background />
      </div>
      <DecideBar onSnoozed={onDone} quiet={quiet} />
    </Review>
  );
}
