import type { PlanOffer, Subscription } from '@rota/sdk';
import { useState } from 'react';
import { api } from '../api/client';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Facts } from '../ui/Facts';
import { Field, Input } from '../ui/Field';
import { cents } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { useCheckout } from './checkout';
import { longDay } from './dates';
import { effectNote, effectOf, firstSeats, planState, tierName } from './planRules';
import { strings } from './strings';
import { usePlanChanged } from './usePlanChange';

/** Says what a change of the plan costs, gives and when it starts, before it is made. */
export function PlanDialog({
  plan,
  plans,
  live,
  onClose,
}: {
  plan: PlanOffer;
  plans: PlanOffer[];
  live: Subscription | null;
  onClose: () => void;
}) {
  const { action } = planState(plan, live, plan.tier);
  const [typed, setTyped] = useState(() =>
    String(action === 'keep' && live?.seats ? live.seats : firstSeats(plan, live)),
  );
  const changed = usePlanChanged();
  const checkout = useCheckout('plan', () => {
    changed();
    onClose();
  });
  const name = tierName(plan.tier);
  const least = plan.minSeats ?? 1;
  const seats = plan.minSeats ? Number(typed) : null;
  const valid = seats === null || (/^\d{1,7}$/.test(typed.trim()) && seats >= least);
  const effect = effectOf(plans, live, plan, seats);
  const pays = effect === 'first' || effect === 'higher';
  const end = live ? longDay(live.currentPeriodEnd) : '';
  const change = () => {
    if (!valid || effect === 'same' || checkout.isPending) return;
    checkout.mutate({
      request: `${plan.tier} ${seats}`,
      create: async (key) => {
        const answer = await api.subscriptions.subscribe(
          { plan: plan.tier.toLowerCase(), ...(seats === null ? {} : { seats }) },
          { idempotencyKey: key },
        );
        if (answer.checkoutUrl) return answer.checkoutUrl;
        toast(effect === 'lower' ? strings.changesOn(name, end) : strings.planContinues);
        return null;
      },
    });
  };
  const words = strings.planActions[live && action !== 'none' ? action : 'subscribe'];
  const title = `${words.verb} ${words.rest(name)}`;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={change}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button
            look="primary"
            type="submit"
            busy={checkout.isPending}
            disabled={!valid || effect === 'same'}
          >
            {pays ? strings.toCheckout : effect === 'lower' ? strings.changeOn(end) : title}
          </Button>
        </>
      }
    >
      {plan.minSeats && (
        <Field
          label={strings.seats}
          kind={strings.atLeast(least)}
          error={valid ? undefined : strings.seatsInvalid(least)}
        >
          {(control) => (
            <Input
              {...control}
              type="number"
              inputMode="numeric"
              min={least}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          )}
        </Field>
      )}
      {valid && (
        <>
          <Facts
            facts={[
              { name: strings.priceAMonth, value: cents(plan.priceCents * (seats ?? 1)) },
              {
                name: strings.allowanceAMonth,
                value: cents(plan.allowanceCents * (seats ?? 1)),
              },
              {
                name: strings.starts,
                value: pays ? strings.whenPaid : effect === 'lower' ? end : strings.now,
              },
            ]}
          />
          <p>{effectNote(effect, live, plan)}</p>
        </>
      )}
      {checkout.error && <ErrorNotice error={checkout.error} />}
    </Dialog>
  );
}
