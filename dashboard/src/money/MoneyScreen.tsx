import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { meQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { TopBar } from '../shell/TopBar';
import { buttonClass } from '../ui/Button';
import { Balance } from './Balance';
import { Holds } from './Holds';
import { Pass } from './Pass';
import { PaymentArrival } from './PaymentArrival';
import { Plan } from './Plan';
import { liveOf, planTitle } from './planRules';
import { subscriptionQuery } from './queries';
import { Spending } from './Spending';
import { strings } from './strings';
import { Transactions } from './Transactions';
import { useTakesPayments } from './useTakesPayments';

/** What is left, what is held by which task, and where each cent went. */
export function MoneyScreen() {
  const { data: me } = useQuery(meQuery);
  return (
    <main className="main" id="main">
      <TopBar title={strings.money}>
        <PlanHint />
      </TopBar>
      <div className="page page-narrow stack-6">
        <PaymentArrival />
        <div className="money-top">
          <Balance />
          <Holds />
        </div>
        <Spending />
        {me?.variant === 'A' && <Plan />}
        {me?.variant === 'B' && <Pass />}
        <Transactions />
      </div>
    </main>
  );
}

/** The plan beside the title, and the way to it. */
function PlanHint() {
  const account = useAccount();
  const { data: me } = useQuery(meQuery);
  const sells = me?.variant === 'A';
  const { data } = useQuery({ ...subscriptionQuery, enabled: sells });
  const mayChange = useTakesPayments(sells) && me?.account.role !== 'member';
  if (!sells || !data) return null;
  return (
    <span className="row push not-phone">
      <span className="small soft clip">
        {planTitle(liveOf(data.subscription), data.effectiveTier)}
      </span>
      <Link
        className={buttonClass({ size: 's' })}
        to="/$account/money"
        params={{ account }}
        search={(now) => now}
        hash="plan"
      >
        {mayChange ? strings.changePlan : strings.seePlans}
      </Link>
    </span>
  );
}
