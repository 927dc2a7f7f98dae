/** The rules of plans: what can be done with each, and what changes when. */
import type { PassBilling, PlanOffer, Subscription, Tier, Trial } from '@rota/sdk';
import { cents, plural } from '../ui/format';
import { longDay } from './dates';
import { strings } from './strings';

export const tierName = (tier: string): string =>
  tier.charAt(0).toUpperCase() + tier.slice(1).toLowerCase();

/** The subscription, unless it has ended. */
export const liveOf = (subscription: Subscription | null): Subscription | null =>
  subscription && subscription.status !== 'CANCELLED' ? subscription : null;

const named = (tier: Tier, seats: number | null): string =>
  seats ? strings.tierWithSeats(tierName(tier), plural(seats, 'seat')) : tierName(tier);

/** The state of the plan in a sentence, for the page. */
export function planNote(live: Subscription, effectiveTier: Tier): string {
  const name = named(live.tier, live.seats);
  const end = longDay(live.currentPeriodEnd);
  if (live.cancelAtPeriodEnd) return strings.planEnds(name, end);
  if (live.downgradeTarget) {
    return strings.planThen(name, end, named(live.downgradeTarget, live.downgradeSeats));
  }
  if (live.status === 'PAST_DUE') {
    return effectiveTier === live.tier
      ? strings.planUnpaid(name)
      : strings.planUnpaidNow(name, tierName(effectiveTier));
  }
  if (live.status === 'TRIALING') return strings.planTrial(name, end);
  return strings.planRenews(name, end);
}

/** The few words beside the title of the page. */
export function planTitle(live: Subscription | null, effectiveTier: Tier): string {
  const name = strings.planName(tierName(effectiveTier));
  if (!live) return name;
  const end = longDay(live.currentPeriodEnd);
  return live.cancelAtPeriodEnd || live.downgradeTarget
    ? strings.endsOn(name, end)
    : strings.renewsOn(name, end);
}

/** Plans with seats are for companies. */
export const plansFor = (plans: PlanOffer[], company: boolean): PlanOffer[] =>
  plans.filter((plan) => company || plan.minSeats === null);

export type PlanAction = 'subscribe' | 'change' | 'seats' | 'keep' | 'none';

/** What the button of a plan does, and how the plan stands to the account's own. */
export function planState(
  plan: PlanOffer,
  live: Subscription | null,
  effectiveTier: Tier,
): { action: PlanAction; mark: 'current' | 'next' | null } {
  const isCurrent = (live ? live.tier : effectiveTier) === plan.tier;
  if (plan.priceCents === 0) {
    const ends = live?.cancelAtPeriodEnd ?? false;
    return { action: 'none', mark: isCurrent ? 'current' : ends ? 'next' : null };
  }
  // A tier that the operator gave to the account needs no subscription.
  if (!live && isCurrent) return { action: 'none', mark: 'current' };
  if (!live) return { action: 'subscribe', mark: null };
  const mark = isCurrent ? 'current' : live.downgradeTarget === plan.tier ? 'next' : null;
  if (live.cancelAtPeriodEnd) return { action: 'none', mark };
  if (isCurrent && live.downgradeTarget) return { action: 'keep', mark };
  if (mark) return { action: plan.minSeats ? 'seats' : 'none', mark };
  return { action: 'change', mark };
}

/** The seats that a dialog starts with. */
export const firstSeats = (plan: PlanOffer, live: Subscription | null): number =>
  Math.max(plan.minSeats ?? 1, live?.downgradeSeats ?? live?.seats ?? 1);

export type Effect = 'first' | 'higher' | 'lower' | 'same' | 'kept';

/** Whether a change needs a payment and starts with it, or waits for the end of the period. */
export function effectOf(
  plans: PlanOffer[],
  live: Subscription | null,
  plan: PlanOffer,
  seats: number | null,
): Effect {
  if (!live) return 'first';
  const rank = (tier: Tier) => plans.findIndex((each) => each.tier === tier);
  const byPlan = rank(plan.tier) - rank(live.tier);
  const difference = byPlan || (seats ?? 1) - (live.seats ?? 1);
  if (difference > 0) return 'higher';
  const next = live.downgradeTarget ?? live.tier;
  const nextSeats = live.downgradeTarget ? live.downgradeSeats : live.seats;
  if (plan.tier === next && (seats ?? null) === (nextSeats ?? null)) return 'same';
  return difference < 0 ? 'lower' : 'kept';
}

/** What a change does and when, in a sentence. */
export function effectNote(effect: Effect, live: Subscription | null, plan: PlanOffer): string {
  const name = tierName(plan.tier);
  const end = live ? longDay(live.currentPeriodEnd) : '';
  if (effect === 'first') return strings.effects.first(name);
  if (effect === 'higher') return strings.effects.higher(tierName(live?.tier ?? ''));
  if (effect === 'lower') return strings.effects.lower(tierName(live?.tier ?? ''), end);
  if (effect === 'kept') return strings.effects.kept(name);
  return strings.effects.same;
}

export const monthly = (priceCents: number): string => strings.aMonth(cents(priceCents));

/** The state of the connect pass in a sentence. */
export function passNote(
  billing: PassBilling | null,
  trial: Trial | null,
  priceCents: number | null,
): string {
  const live = billing && billing.status !== 'CANCELLED' ? billing : null;
  if (live?.cancelAtPeriodEnd) return strings.pass.ends(longDay(live.currentPeriodEnd));
  if (live?.status === 'PAST_DUE') return strings.pass.unpaid;
  if (live) {
    const end = longDay(live.currentPeriodEnd);
    return priceCents === null
      ? strings.pass.renews(end)
      : strings.pass.renewsFor(end, monthly(priceCents));
  }
  if (trial?.active) return strings.pass.trial(longDay(trial.endsAt));
  return trial ? strings.pass.trialEnded(longDay(trial.endsAt)) : strings.pass.none;
}
