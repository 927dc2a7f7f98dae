import type { Review } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { Facts } from '../ui/Facts';
import { Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Day, Span } from '../ui/Time';
import { toolName } from './CallCard';
import { budgetLeft, failsAtDeadline, isQuestion, pendingItems } from './data';
import { useAgent } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

function Wants({ review }: { review: Review }) {
  const items = pendingItems(review);
  const [only] = items;
  if (review.gate === 'run') return <>{strings.wantsRun}</>;
  if (review.gate === 'output') return <>{strings.wantsOutput}</>;
  if (review.gate === null) return <>{strings.wantsExternal}</>;
  if (items.length !== 1 || !only) return <>{strings.wantsSome(items.length)}</>;
  if (isQuestion(only)) return <>{strings.wantsAnswer}</>;
  return (
    <>
      {strings.wants}{' '}
      <code>
        <SafeText>{toolName(only)}</SafeText>
      </code>
    </>
  );
}

/** Who asks, on the page of a review. */
function Asker() {
  const account = useAccount();
  const { data } = useReviewView();
  const name = data.task.assignedAgent;
  const agent = useAgent(name);
  return (
    <p className="row small">
      <AgentMark initials={agent.initials} rank={agent.rank} />
      <span>
        {name ? (
          <Link className="strong" to="/$account/agents/$name" params={{ account, name }}>
            <SafeText>{agent.displayName}</SafeText>
          </Link>
        ) : (
          <span className="strong">{agent.displayName}</span>
        )}
        <br />
        <span className="soft">
          <Wants review={data.review} />
        </span>
      </span>
    </p>
  );
}

/** What will happen in one sentence, what it costs, and what happens without a decision. */
export function ReviewHead() {
  const { data, page, state } = useReviewView();
  const { review, task } = data;
  const left = budgetLeft(task);
  const Title = page ? 'h1' : 'h2';
  const reasons = [...new Set(pendingItems(review).map((item) => item.reason))].filter(Boolean);
  return (
    <>
      <div className={page ? 'stack-4' : 'stack'}>
        {page && <Asker />}
        <Title className={page ? 'review-title review-title-l' : 'review-title'} tabIndex={-1}>
          <SafeText>{review.summary ?? task.name}</SafeText>{' '}
          {state.editCount > 0 && <Badge tone="accent">{strings.withEdits(state.editCount)}</Badge>}
        </Title>
        {reasons.map((reason) => (
          <p className="soft" key={reason}>
            <SafeText>{reason ?? ''}</SafeText>
          </p>
        ))}
      </div>
      <Facts
        className={left === null ? undefined : 'facts-4'}
        facts={[
          ...(left === null
            ? []
            : [
                { name: strings.costSoFar, value: <Money usd={task.usage.costUsd} /> },
                {
                  name: strings.canStillCost,
                  value: (
                    <>
                      {strings.atMost} <Money usd={left} />
                    </>
                  ),
                },
              ]),
          {
            name: strings.waiting,
            value: review.requestedAt && <Span from={review.requestedAt} />,
          },
          {
            name: strings.withoutDecision,
            value: failsAtDeadline(data) ? strings.failed : strings.cancelled,
            note: review.expiresAt && (
              <>
                <Day at={review.expiresAt} />, {strings.inTime} <Span to={review.expiresAt} />
              </>
            ),
          },
        ]}
      />
    </>
  );
}
