import type { PassBilling, Trial } from '@rota/sdk';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { api } from '../api/client';
import { meQuery } from '../api/queries';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { useActionKeys, useCheckout } from './checkout';
import { longDay } from './dates';
import { monthly, passNote, tierName } from './planRules';
import { offerQuery, passQuery } from './queries';
import { strings } from './strings';
import { usePlanChanged } from './usePlanChange';
import { useTakesPayments } from './useTakesPayments';

/** The tier, which is not for sale, and the connect pass of a personal account. */
export function Pass() {
  const id = useId();
  const { data: me } = useQuery(meQuery);
  const personal = me?.account.kind === 'personal';
  const { data, error } = useQuery({ ...passQuery, enabled: personal });
  if (!me) return null;
  return (
    <section className="card" aria-labelledby={id} id="plan">
      <div className="card-head">
        <h2 id={id}>{personal ? strings.pass.title : strings.tier}</h2>
        {data && <PassBadge billing={data.billing} trial={data.trial} />}
        <span className="strong push">{strings.tierIs(tierName(me.effectiveTier))}</span>
      </div>
      {error && (
        <div className="card-pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {personal && !data && !error && <Loading />}
      {data && <PassBody billing={data.billing} trial={data.trial} />}
      <p className="card-foot small soft">{strings.tierByOperator}</p>
    </section>
  );
}

function PassBadge({ billing, trial }: { billing: PassBilling | null; trial: Trial | null }) {
  const live = billing && billing.status !== 'CANCELLED' ? billing : null;
  if (live?.cancelAtPeriodEnd) return <Badge tone="wait">{strings.badges.ending}</Badge>;
  if (live?.status === 'PAST_DUE') return <Badge tone="bad">{strings.badges.unpaid}</Badge>;
  if (live) return <Badge tone="good">{strings.badges.active}</Badge>;
  if (trial?.active) return <Badge tone="good">{strings.badges.trial}</Badge>;
  return null;
}

function usePassChange(verb: 'cancel' | 'resume') {
  const changed = usePlanChanged();
  const { keyOf, forget } = useActionKeys();
  return useMutation({
    mutationFn: () => {
      return api.connectPass[verb]({ idempotencyKey: keyOf(verb) });
    },
    onSuccess: (billing) => {
      forget();
      changed();
      const end = longDay(billing.currentPeriodEnd);
      toast(verb === 'cancel' ? strings.pass.willEnd(end) : strings.pass.continues);
    },
  });
}

function PassBody({ billing, trial }: { billing: PassBilling | null; trial: Trial | null }) {
  const { data: offer } = useQuery(offerQuery);
  const takesPayments = useTakesPayments();
  const [cancelling, setCancelling] = useState(false);
  const checkout = useCheckout('pass');
  const cancel = usePassChange('cancel');
  const resume = usePassChange('resume');
  const price = offer?.connectPass?.priceCents ?? null;
  const isLive = billing !== null && billing.status !== 'CANCELLED';
  const buy = () =>
    checkout.mutate({
      request: 'pass',
      create: (key) => api.connectPass.checkout({ idempotencyKey: key }),
    });
  const problem = checkout.error ?? resume.error;
  return (
    <div className="card-pad stack-4">
      <div className="row row-wrap">
        <div className="stack grow">
          <p>{passNote(billing, trial, price)}</p>
          <p className="small soft">{strings.pass.gives}</p>
        </div>
        {!isLive && takesPayments && (
          <Button busy={checkout.isPending} onClick={buy}>
            {price === null ? strings.pass.buy : strings.pass.buyFor(monthly(price))}
          </Button>
        )}
        {billing?.canCancel && (
          <Button look="danger" onClick={() => setCancelling(true)}>
            {strings.pass.cancel}
          </Button>
        )}
        {billing?.canResume && (
          <Button busy={resume.isPending} onClick={() => resume.mutate()}>
            {strings.pass.resume}
          </Button>
        )}
      </div>
      {problem && <ErrorNotice error={problem} />}
      {cancelling && billing && (
        <Dialog
          title={strings.pass.cancelTitle}
          onClose={() => setCancelling(false)}
          onSubmit={() => cancel.mutate(undefined, { onSuccess: () => setCancelling(false) })}
          actions={
            <>
              <Button onClick={() => setCancelling(false)}>{strings.pass.keep}</Button>
              <Button look="danger-solid" type="submit" busy={cancel.isPending}>
                {strings.pass.cancel}
              </Button>
            </>
          }
        >
          <p>{strings.pass.cancelEffect(longDay(billing.currentPeriodEnd))}</p>
          {cancel.error && <ErrorNotice error={cancel.error} />}
        </Dialog>
      )}
    </div>
  );
}
