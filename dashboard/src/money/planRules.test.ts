import type { PlanOffer, Subscription } from '@rota/sdk';
import { describe, expect, it } from 'vitest';
import { effectOf, planState, plansFor } from './planRules';

const offer = (tier: PlanOffer['tier'], priceCents: number, minSeats: number | null = null) =>
  ({ tier, priceCents, allowanceCents: priceCents / 2, minSeats }) satisfies PlanOffer;
const basic = offer('BASIC', 0);
const standard = offer('STANDARD', 2_000);
const advanced = offer('ADVANCED', 6_000);
const corporate = offer('CORPORATE', 3_000, 1);
const plans = [basic, standard, advanced, corporate];

const subscription = (changes: Partial<Subscription> = {}): Subscription => ({
  tier: 'STANDARD',
  status: 'ACTIVE',
  seats: null,
  currentPeriodStart: '2026-11-01T00:00:00Z',
  currentPeriodEnd: '2026-12-01T00:00:00Z',
  cancelAtPeriodEnd: false,
  downgradeTarget: null,
  downgradeSeats: null,
  ...changes,
});

it('offers plans with seats to companies only', () => {
  expect(plansFor(plans, false)).toEqual([basic, standard, advanced]);
  expect(plansFor(plans, true)).toEqual(plans);
});

describe('what can be done with a plan', () => {
  it('subscribes without a subscription, but not to the tier that the operator gave', () => {
    expect(planState(standard, null, 'BASIC')).toEqual({ action: 'subscribe', mark: null });
    expect(planState(advanced, null, 'ADVANCED')).toEqual({ action: 'none', mark: 'current' });
    expect(planState(basic, null, 'BASIC')).toEqual({ action: 'none', mark: 'current' });
  });

  it('changes to others, and changes the seats of the current one', () => {
    expect(planState(advanced, subscription(), 'STANDARD').action).toBe('change');
    expect(planState(standard, subscription(), 'STANDARD').action).toBe('none');
    const seated = subscription({ tier: 'CORPORATE', seats: 5 });
    expect(planState(corporate, seated, 'CORPORATE').action).toBe('seats');
  });

  it('keeps the current plan when a lower one is planned', () => {
    const live = subscription({ tier: 'ADVANCED', downgradeTarget: 'STANDARD' });
    expect(planState(advanced, live, 'ADVANCED')).toEqual({ action: 'keep', mark: 'current' });
    expect(planState(standard, live, 'ADVANCED')).toEqual({ action: 'none', mark: 'next' });
  });

  it('changes nothing while the plan ends', () => {
    const live = subscription({ cancelAtPeriodEnd: true });
    expect(planState(advanced, live, 'STANDARD').action).toBe('none');
    expect(planState(basic, live, 'STANDARD').mark).toBe('next');
  });
});

describe('when a change starts', () => {
  const seated = subscription({ tier: 'CORPORATE', seats: 5 });
  it.each([
    ['first', null, standard, null],
    ['higher', subscription(), advanced, null],
    ['lower', subscription({ tier: 'ADVANCED' }), standard, null],
    ['higher', seated, corporate, 6],
    ['lower', seated, corporate, 4],
    ['same', seated, corporate, 5],
    [
      'kept',
      subscription({ ...seated, downgradeTarget: 'CORPORATE', downgradeSeats: 3 }),
      corporate,
      5,
    ],
    [
      'same',
      subscription({ ...seated, downgradeTarget: 'CORPORATE', downgradeSeats: 3 }),
      corporate,
      3,
    ],
  ] as const)('is %s', (effect, live, plan, seats) =>
    expect(effectOf(plans, live, plan, seats)).toBe(effect),
  );
});
