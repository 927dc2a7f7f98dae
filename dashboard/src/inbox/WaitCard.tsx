import type { Agent, Approval } from '@rota/sdk';
import { Link, useNavigate } from '@tanstack/react-router';
import { definitionChanged } from '../review/data';
import { agentOf } from '../review/people';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { Check } from '../ui/Field';
import { usd } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Meter, Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { Span, useNow } from '../ui/Time';
import { useWide } from '../ui/wide';
import { strings } from './strings';

const URGENT_MS = 3_600_000;

function Cost({ usage }: { usage: Approval['task']['usage'] }) {
  if (usage.budgetUsd === null || usage.budgetUsd === undefined) return null;
  return (
    <span className="cost num">
      <Meter
        used={Number(usage.costUsd)}
        total={Number(usage.budgetUsd)}
        label={`${usd(usage.costUsd)} ${strings.of} ${usd(usage.budgetUsd)}`}
      />
      <span>
        <Money usd={usage.costUsd} /> {strings.of} <Money usd={usage.budgetUsd} />
      </span>
    </span>
  );
}

function TimeLeft({ approval, later }: { approval: Approval; later: boolean }) {
  const now = useNow();
  const { expiresAt } = approval.review;
  if (later && approval.snoozedUntil) {
    return (
      <span className="row push">
        <Icon name="clock" small />
        {strings.backIn} <Span to={approval.snoozedUntil} />
      </span>
    );
  }
  if (!expiresAt) return null;
  const left = Date.parse(expiresAt) - now;
  return (
    <span className={left < URGENT_MS ? 'row push urgent' : 'row push'}>
      <Icon name="clock" small />
      {left <= 0 ? (
        strings.expired
      ) : (
        <>
          <Span to={expiresAt} /> {strings.left}
        </>
      )}
    </span>
  );
}

export interface CardState {
  selected: boolean;
  checked: boolean;
  later: boolean;
  onCheck: (yes: boolean) => void;
}

/** One thing that waits: what, who, what it costs, and how long there is. */
export function WaitCard({
  approval,
  agents,
  state,
}: {
  approval: Approval;
  agents: readonly Agent[] | undefined;
  state: CardState;
}) {
  const account = useAccount();
  const wide = useWide();
  const navigate = useNavigate();
  const { task, review } = approval;
  const agent = agentOf(agents, task.assignedAgent);
  const summary = review.summary ?? task.name;
  const title = <SafeText>{summary}</SafeText>;
  return (
    <li className="wait-item" data-selected={state.selected || undefined} data-task={task.id}>
      <Check
        aria-label={strings.select(summary)}
        checked={state.checked}
        onChange={(event) => state.onCheck(event.target.checked)}
        label=""
      />
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
        <p className="small soft clip">
          <SafeText>{agent.displayName}</SafeText> · <SafeText>{task.name}</SafeText>
        </p>
        {definitionChanged(review) && (
          <p>
            <Badge tone="wait" icon="alert">
              {strings.definitionChanged}
            </Badge>
          </p>
        )}
        <p className="wait-meta">
          <Cost usage={task.usage} />
          <TimeLeft approval={approval} later={state.later} />
        </p>
      </div>
    </li>
  );
}
