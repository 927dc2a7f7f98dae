import { SafeText } from '../ui/SafeText';
import { AgentSays } from './AgentSays';
import { isQuestion, pendingItems } from './data';
import { History } from './History';
import { LedHere } from './LedHere';
import { useActorName } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';
import { ToolCard } from './ToolCard';

/** What the agent says, when it says it about one call. With several calls, each card has its own. */
export function Words() {
  const { data } = useReviewView();
  const items = pendingItems(data.review);
  const [only] = items;
  return items.length === 1 && only?.agentSays ? <AgentSays text={only.agentSays} /> : null;
}

/** The calls of this review that were decided one by one before. */
export function DecidedItems() {
  const { data } = useReviewView();
  const nameOf = useActorName();
  const items = data.review.items.filter((item) => item.decision !== null);
  if (!items.length) return null;
  return (
    <ul className="stack small soft">
      {items.map((item) => (
        <li key={item.id}>
          {item.decision === 'approved'
            ? item.edited
              ? strings.approvedEdited
              : strings.approvedWord
            : strings.rejectedWord}
          {item.decidedBy?.via === 'rule' && (
            <>
              {' '}
              {strings.by} <SafeText>{nameOf(item.decidedBy)}</SafeText>
            </>
          )}
          : <SafeText>{item.summary}</SafeText>
        </li>
      ))}
    </ul>
  );
}

/** Tools, the steps before, earlier reviews, and what the decision covers. */
export function Background() {
  const { data } = useReviewView();
  const { review } = data;
  const tools = pendingItems(review).filter((item) => item.tool !== null && !isQuestion(item));
  const distinct = tools.filter(
    (item, at) =>
      tools.findIndex((each) => each.tool === item.tool && each.serverId === item.serverId) === at,
  );
  return (
    <>
      {distinct.map((item) => (
        <ToolCard key={item.id} item={item} />
      ))}
      <LedHere />
      <History />
      {review.number !== null && (
        <p className="tiny faint digest">
          {strings.digest(review.number)} ·{' '}
          <span className="mono" title={review.digest ?? undefined}>
            {(review.digest ?? '').slice(0, 12).replace(/(.{4})(?=.)/g, '$1 ')}
          </span>{' '}
          · {strings.counts}
        </p>
      )}
    </>
  );
}
