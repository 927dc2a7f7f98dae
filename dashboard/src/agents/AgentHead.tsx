import type { Agent } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { meQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { buttonClass } from '../ui/Button';
import { Facts } from '../ui/Facts';
import { count, duration } from '../ui/format';
import { Cost } from '../ui/Money';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { statisticsQuery } from './queries';
import { rankName, strings, tierName } from './strings';
import { needsCompany } from './tiers';

export function AgentHead({ agent }: { agent: Agent }) {
  return (
    <>
      <div className="agent-head">
        <div className="agent-title">
          <AgentMark initials={agent.initials} rank={agent.tier} size="l" />
          <div className="stack">
            <h1 className="review-title review-title-l">
              <SafeText>{agent.displayName}</SafeText>
            </h1>
            <p className="row row-wrap small soft">
              <span>
                {rankName(agent.tier)}, <SafeText>{agent.department}</SafeText>
              </span>
              <code className="faint">{agent.name}</code>
              {agent.premium && <Badge>{strings.premium}</Badge>}
            </p>
          </div>
        </div>
        <p className="agent-about">
          <SafeText>{agent.description}</SafeText>
        </p>
        <p className="row row-wrap tight">
          {agent.tags.map((tag) => (
            <Badge key={tag} tone="line">
              <SafeText>{tag}</SafeText>
            </Badge>
          ))}
        </p>
      </div>
      {agent.locked && <LockNotice tier={agent.requiredTier} />}
      <Statistics name={agent.name} />
    </>
  );
}

function LockNotice({ tier }: { tier: Agent['requiredTier'] }) {
  const account = useAccount();
  const kind = useQuery(meQuery).data?.account.kind;
  const title = strings.lockedTitle(tierName(tier));
  if (needsCompany(tier, kind)) return <Notice title={title}>{strings.lockedCompany}</Notice>;
  return (
    <Notice
      title={title}
      actions={
        <Link
          className={buttonClass({ look: 'primary' })}
          to="/$account/money"
          params={{ account }}
          hash="plan"
        >
          {strings.seePlans}
        </Link>
      }
    >
      {strings.lockedHint}
    </Notice>
  );
}

function Statistics({ name }: { name: string }) {
  const { data } = useQuery(statisticsQuery(name));
  const { statistics: words } = strings;
  const ended = data ? data.completed + data.failed : 0;
  const none = data && !ended ? words.noneNote : undefined;
  return (
    <Facts
      className="facts-task"
      facts={[
        {
          name: words.tasks,
          value: data ? count(data.tasks) : words.none,
          note: data && (words.now(data.running, data.waiting) || undefined),
        },
        {
          name: words.success,
          value: data?.successRate == null ? words.none : `${Math.floor(data.successRate * 100)}%`,
          note: none ?? (data && words.ofEnded(data.completed, data.failed, data.cancelled)),
        },
        {
          name: words.cost,
          value: data?.medianCostUsd ? <Cost usd={data.medianCostUsd} /> : words.none,
        },
        {
          name: words.time,
          value: data?.medianDurationMs == null ? words.none : duration(data.medianDurationMs),
        },
      ]}
    />
  );
}
