import type { Account, PlanOffer, Subscription } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { meQuery } from '../api/queries';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { exact } from '../ui/format';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { CancelPlanDialog } from './CancelPlanDialog';
import { PlanDialog } from './PlanDialog';
import { PlanTable } from './PlanTable';
import { liveOf, planNote, plansFor, tierName } from './planRules';
import { offerQuery, subscriptionQuery } from './queries';
import { strings } from './strings';
import { useResumePlan } from './usePlanChange';
import { useTakesPayments } from './useTakesPayments';

/** The plan of the account, what the others give and cost, and what changes when. */
export function Plan() {
  const id = useId();
  const { data: me } = useQuery(meQuery);
  const { data, error } = useQuery(subscriptionQuery);
  const live = liveOf(data?.subscription ?? null);
  return (
    <section className="card" aria-labelledby={id} id="plan">
      <div className="card-head">
        <h2 id={id}>{strings.plan}</h2>
        {live && <PlanBadge live={live} />}
        {data && <span className="strong push">{tierName(data.effectiveTier)}</span>}
      </div>
      {error && (
        <div className="card-pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {!data && !error && <Loading />}
      {data && live && (
        <p className="card-pad plan-note" title={exact(live.currentPeriodEnd)}>
          {planNote(live, data.effectiveTier)}
        </p>
      )}
      {data && me && <Choices live={live} account={me.account} />}
    </section>
  );
}

function PlanBadge({ live }: { live: Subscription }) {
  if (live.cancelAtPeriodEnd) return <Badge tone="wait">{strings.badges.ending}</Badge>;
  if (live.status === 'PAST_DUE') return <Badge tone="bad">{strings.badges.unpaid}</Badge>;
  if (live.status === 'TRIALING') return <Badge tone="good">{strings.badges.trial}</Badge>;
  return <Badge tone="good">{strings.badges.active}</Badge>;
}

function Choices({ live, account }: { live: Subscription | null; account: Account }) {
  const { data: offer, error } = useQuery(offerQuery);
  const [chosen, setChosen] = useState<PlanOffer | null>(null);
  const [cancelling, setCancelling] = useState(false);
  const resume = useResumePlan();
  const mayPay = account.role !== 'member';
  const mayChange = useTakesPayments() === true && mayPay;
  const problem = error ?? resume.error;
  return (
    <>
      {problem && (
        <div className="card-pad">
          <ErrorNotice error={problem} />
        </div>
      )}
      {offer && (
        <PlanTable
          plans={plansFor(offer.plans, account.kind === 'company')}
          mayChange={mayChange}
          onChoose={setChosen}
        />
      )}
      {offer && <p className="plan-gives small soft">{strings.higherGives}</p>}
      {live && mayChange && (
        <div className="card-foot row small soft">
          {live.cancelAtPeriodEnd ? (
            <>
              <span>{strings.resumeHint}</span>
              <span className="push">
                <Button size="s" busy={resume.isPending} onClick={() => resume.mutate()}>
                  {strings.resumePlan}
                </Button>
              </span>
            </>
          ) : (
            <>
              <span>{strings.cancelHint}</span>
              <span className="push">
                <Button size="s" look="danger" onClick={() => setCancelling(true)}>
                  {strings.cancelPlan}
                </Button>
              </span>
            </>
          )}
        </div>
      )}
      {!mayPay && <p className="card-foot tiny faint">{strings.adminsOnly}</p>}
      {offer && mayPay && !mayChange && (
        <p className="card-foot tiny faint">{strings.planByOperator}</p>
      )}
      {chosen && offer && (
        <PlanDialog plan={chosen} plans={offer.plans} live={live} onClose={() => setChosen(null)} />
      )}
      {cancelling && live && <CancelPlanDialog live={live} onClose={() => setCancelling(false)} />}
    </>
  );
}
