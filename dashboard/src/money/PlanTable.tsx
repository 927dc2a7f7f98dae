import type { PlanOffer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { companyQuery } from '../members/data';
import { useAccount } from '../shell/account';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { cents, plural } from '../ui/format';
import { liveOf, monthly, planState, tierName } from './planRules';
import { subscriptionQuery } from './queries';
import { strings } from './strings';

/** The plans side by side. */
export function PlanTable({
  plans,
  mayChange,
  onChoose,
}: {
  plans: PlanOffer[];
  mayChange: boolean;
  onChoose: (plan: PlanOffer) => void;
}) {
  return (
    <table className="table table-plans">
      <thead>
        <tr>
          <th scope="col">{strings.plan}</th>
          <th scope="col" className="end">
            {strings.price}
          </th>
          <th scope="col" className="end">
            {strings.monthlyAllowance}
          </th>
          <th scope="col">
            <span className="sr">{strings.action}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {plans.map((plan) => (
          <PlanRow
            key={plan.tier}
            plan={plan}
            onChoose={mayChange ? () => onChoose(plan) : undefined}
          />
        ))}
      </tbody>
    </table>
  );
}

function PlanRow({ plan, onChoose }: { plan: PlanOffer; onChoose: (() => void) | undefined }) {
  const account = useAccount();
  const { data } = useQuery(subscriptionQuery);
  const live = liveOf(data?.subscription ?? null);
  // A company can have seats without a subscription, from the operator. They cost it nothing.
  const given = useQuery({
    ...companyQuery(account),
    enabled: plan.minSeats !== null && data?.effectiveTier === plan.tier && !live,
  }).data?.seats;
  if (!data) return null;
  const { action, mark } = planState(plan, live, data.effectiveTier);
  const name = tierName(plan.tier);
  const per = plan.minSeats ? strings.perSeat : null;
  const seats = mark === 'current' ? (live?.seats ?? given) : null;
  return (
    <tr data-current={mark === 'current' || undefined}>
      <td>
        <span className="row row-wrap">
          <span className="strong">{name}</span>
          {mark && (
            <Badge tone={mark === 'current' ? 'accent' : 'wait'}>{strings.marks[mark]}</Badge>
          )}
        </span>
        {seats ? (
          <span className="block tiny soft">
            {live
              ? strings.seatsFor(plural(seats, 'seat'), monthly(plan.priceCents * seats))
              : plural(seats, 'seat')}
          </span>
        ) : (
          plan.minSeats && (
            <span className="block tiny faint">
              {plan.minSeats > 1
                ? strings.seatsAtLeast(plural(plan.minSeats, 'seat'))
                : strings.forCompanies}
            </span>
          )
        )}
      </td>
      <td className="end" data-l={strings.price}>
        {plan.priceCents === 0 ? strings.free : strings.aMonth(cents(plan.priceCents))}
        {per && <span className="block tiny faint"> {per}</span>}
      </td>
      <td className="end" data-l={strings.monthlyAllowance}>
        {plan.allowanceCents === 0 ? strings.none : strings.aMonth(cents(plan.allowanceCents))}
        {per && plan.allowanceCents > 0 && <span className="block tiny faint"> {per}</span>}
      </td>
      <td className="act end">
        {action !== 'none' && onChoose && (
          <Button size="s" onClick={onChoose}>
            {strings.planActions[action].verb}
            <span className="sr"> {strings.planActions[action].rest(name)}</span>
          </Button>
        )}
      </td>
    </tr>
  );
}
