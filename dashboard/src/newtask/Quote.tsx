import type { AgentDetails, Quote as QuoteData } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { needsCompany } from '../agents/tiers';
import { meQuery } from '../api/queries';
import { TopUpLink } from '../money/TopUpLink';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { cents, roundedDown } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Cents, Cost } from '../ui/Money';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Shape } from '../ui/Status';
import { stopsOf, tasksCovered } from './draft';
import { strings } from './strings';
import { ToolsNeeded } from './ToolsNeeded';

/** Undefined: the quote is for one task. */
interface Tasks {
  tasks: number | undefined;
}

function Costs({ quote, tasks }: { quote: QuoteData } & Tasks) {
  const usual = quote.typicalCost;
  const many = tasks ?? 1;
  return (
    <div>
      <p className="small soft">{strings.most(tasks)}</p>
      <p className="money-big">
        <Cents value={quote.budgetCents * Math.max(many, 1)} />
      </p>
      <p className="small soft">
        {many > 1 && `${strings.each(cents(quote.budgetCents))} `}
        {usual && (
          <>
            {strings.usual(usual.tasks)} <Cost usd={usual.medianUsd} />, {strings.usualMost}{' '}
            <Cost usd={usual.p90Usd} />.{' '}
          </>
        )}
        {strings.back}
      </p>
    </div>
  );
}

function Gates({ agent, quote }: { agent: AgentDetails; quote: QuoteData }) {
  const stops = stopsOf(agent, quote.opensGates);
  const text = strings.asks(stops) || strings.asksNothing;
  return (
    <li>
      <Shape shape="waiting" />
      <div>
        <p className="strong">{strings.asksTitle(stops)}</p>
        <p className="small soft wrap">
          <SafeText>{text}</SafeText> {agent.tier < 3 && strings.asksHelpers}
        </p>
      </div>
    </li>
  );
}

function Balance({ quote, tasks }: { quote: QuoteData } & Tasks) {
  const available = roundedDown(quote.balance.availableUsd);
  const many = Math.max(tasks ?? 1, 1);
  const budget = cents(quote.budgetCents * many);
  const covered = quote.balance.covered
    ? many === 1
      ? 1
      : tasksCovered(quote.balance.availableUsd, quote.budgetCents)
    : 0;
  const isCovered = covered >= many;
  return (
    <li>
      <Icon name={isCovered ? 'money' : 'alert'} />
      <div>
        <p className="strong">{isCovered ? strings.covered : strings.notCovered}</p>
        <p className="small soft">
          {isCovered ? strings.held(budget, available) : strings.missing(budget, available)}{' '}
          {quote.balance.paidByParent && strings.byParent}
          {!isCovered && many > 1 && `${strings.coversSome(covered)} `}
          {!isCovered && <TopUpLink className="link" />}
        </p>
      </div>
    </li>
  );
}

function Lock({ agent }: { agent: AgentDetails }) {
  const account = useAccount();
  const company = needsCompany(agent.requiredTier, useQuery(meQuery).data?.account.kind);
  return (
    <li>
      <Icon name="lock" />
      <div>
        <p className="strong">{strings.needs(agent.requiredTier)}</p>
        <p className="small soft">
          {company ? strings.lockedCompany : strings.locked}{' '}
          {!company && (
            <Link className="link" to="/$account/money" params={{ account }} hash="plan">
              {strings.seePlans}
            </Link>
          )}
        </p>
      </div>
    </li>
  );
}

/** What the task, or each of many, can cost at most, where it will stop, what it may use. */
export function Quote({
  agent,
  quote,
  error,
  tasks,
  children,
}: {
  agent: AgentDetails | undefined;
  quote: QuoteData | undefined;
  error: unknown;
  tasks?: number;
  children: ReactNode;
}) {
  return (
    <aside className="quote" aria-label={strings.quote}>
      <div className="card">
        {agent ? (
          <>
            <div className="card-pad stack-4">
              <p className="row">
                <AgentMark initials={agent.initials} rank={agent.tier} />
                <span>
                  <strong>
                    <SafeText>{agent.displayName}</SafeText>
                  </strong>
                  <br />
                  <span className="small soft dot-list">
                    <span>
                      <SafeText>{agent.department}</SafeText>
                    </span>
                    <span>{strings.rank(agent.tier)}</span>
                    <span>{strings.version(agent.version)}</span>
                  </span>
                </span>
              </p>
              {quote && <Costs quote={quote} tasks={tasks} />}
              {!quote && !agent.locked && !error && <p className="small soft">{strings.quoting}</p>}
              {error ? <ErrorNotice error={error} /> : null}
            </div>
            <ul className="quote-list">
              {quote && <Gates agent={agent} quote={quote} />}
              <ToolsNeeded agent={agent} />
              {agent.locked && <Lock agent={agent} />}
              {quote && <Balance quote={quote} tasks={tasks} />}
            </ul>
          </>
        ) : (
          <div className="card-pad stack">
            {error ? <ErrorNotice error={error} /> : <p className="soft">{strings.chooseAgent}</p>}
          </div>
        )}
        <div className="card-foot stack quote-foot">{children}</div>
      </div>
    </aside>
  );
}
