import type { Agent, Approval, ToolServer } from '@rota/sdk';
import { Link, useNavigate } from '@tanstack/react-router';
import {
  argumentsOf,
  failsAtDeadline,
  isQuestion,
  pendingItems,
  toolProblem,
} from '../review/data';
import { agentOf } from '../review/people';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { Check } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Span, useNow } from '../ui/Time';
import { useWide } from '../ui/wide';
import { strings } from './strings';

const MINUTE_MS = 60_000;
const URGENT_MS = 60 * MINUTE_MS;

/** How long it has waited. The list is in this order. */
function Age({ since }: { since: string }) {
  const now = useNow();
  if (now - Date.parse(since) < MINUTE_MS) return <span>{strings.justNow}</span>;
  return (
    <span>
      {strings.waitingFor} <Span from={since} brief />
    </span>
  );
}

function Cost({ usage }: { usage: Approval['task']['usage'] }) {
  if (usage.budgetUsd === null || usage.budgetUsd === undefined) return null;
  return (
    <span>
      <Money usd={usage.costUsd} /> {strings.of} <Money usd={usage.budgetUsd} />
    </span>
  );
}

/** What happens without a decision, or when a review that was put off comes back. */
function Outlook({ approval, later }: { approval: Approval; later: boolean }) {
  const now = useNow();
  const { expiresAt } = approval.review;
  if (later && approval.snoozedUntil) {
    return (
      <span className="push">
        {strings.backIn} <Span to={approval.snoozedUntil} brief />
      </span>
    );
  }
  if (!expiresAt) return null;
  const left = Date.parse(expiresAt) - now;
  const words = failsAtDeadline(approval) ? strings.failsIn : strings.cancelledIn;
  return (
    <span className={left < URGENT_MS ? 'row push urgent' : 'push'}>
      {left < URGENT_MS && <Icon name="clock" small />}
      <span>
        {left <= 0 ? (
          strings.expired
        ) : (
          <>
            {words} <Span to={expiresAt} brief />
          </>
        )}
      </span>
    </span>
  );
}

/** What the agent asks, if it asks something. */
function questionOf({ review }: Approval): string | null {
  const item = pendingItems(review).find(isQuestion);
  const question = item && argumentsOf(item).question;
  return typeof question === 'string' ? question : null;
}

export interface CardState {
  selected: boolean;
  checked: boolean;
  later: boolean;
  /** Absent: the person cannot decide, so there is nothing to select for. */
  onCheck?: (yes: boolean) => void;
}

/** One thing that waits: what, who, how long, what it costs, and what happens without a decision. */
export function WaitCard({
  approval,
  agents,
  servers,
  state,
}: {
  approval: Approval;
  agents: readonly Agent[] | undefined;
  servers: readonly ToolServer[] | undefined;
  state: CardState;
}) {
  const account = useAccount();
  const wide = useWide();
  const navigate = useNavigate();
  const { task, review } = approval;
  const agent = agentOf(agents, task.assignedAgent);
  const summary = review.summary ?? task.name;
  const title = <SafeText>{summary}</SafeText>;
  const question = questionOf(approval);
  const problem = toolProblem(review, servers);
  const { onCheck } = state;
  return (
    <li className="wait-item" data-selected={state.selected || undefined} data-task={task.id}>
      {onCheck && (
        <Check
          aria-label={strings.select(summary)}
          checked={state.checked}
          onChange={(event) => onCheck(event.target.checked)}
          label=""
        />
      )}
      <AgentMark initials={agent.initials} rank={agent.rank} />
      <div>
        <p className="what">
          {wide ? (
            <Link
              to="/$account"
              params={{ account }}
              search={(before) => ({ ...before, task: task.id })}
              replace
              resetScroll={false}
              aria-current={state.selected || undefined}
              onKeyDown={(event) => {
                if (event.key !== 'Enter' || event.metaKey || event.ctrlKey) return;
                event.preventDefault();
                navigate({ to: '/$account/reviews/$id', params: { account, id: task.id } });
              }}
            >
              {title}
            </Link>
          ) : (
            <Link to="/$account/reviews/$id" params={{ account, id: task.id }}>
              {title}
            </Link>
          )}
        </p>
        {question && (
          <p className="small soft wait-asks">
            {strings.asks} “<SafeText>{question}</SafeText>”
          </p>
        )}
        <p className="small soft clip">
          <SafeText>{agent.displayName}</SafeText> · <SafeText>{task.name}</SafeText>
        </p>
        {problem && (
          <p>
            <Badge tone="wait" icon="alert">
              {strings.toolProblem[problem]}
            </Badge>
          </p>
        )}
        <p className="wait-meta">
          <span className="dot-list">
            {review.requestedAt && <Age since={review.requestedAt} />}
            <Cost usage={task.usage} />
          </span>
          <Outlook approval={approval} later={state.later} />
        </p>
      </div>
    </li>
  );
}
