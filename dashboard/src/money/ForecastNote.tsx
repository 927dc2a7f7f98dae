import type { BalanceResponse } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { outlook } from './forecast';
import { OnDay } from './OnDay';
import { forecastQuery } from './queries';
import { strings } from './strings';
import { useTakesPayments } from './useTakesPayments';

export function ForecastNote({ balance }: { balance: BalanceResponse }) {
  const { data } = useQuery(forecastQuery);
  const takesPayments = useTakesPayments();
  if (!data || takesPayments === undefined) return null;
  const seen = outlook(balance, data, takesPayments);
  const resetsAt = balance.usageBar.resetsAt;
  switch (seen.kind) {
    case 'quiet':
      return <p className="small soft">{strings.quiet(seen.days)}</p>;
    case 'allowance-lasts':
      return <p className="small soft">{strings.allowanceLasts}</p>;
    case 'balance-lasts':
      return <p className="small soft">{strings.balanceLasts}</p>;
    case 'balance-ends':
      return (
        <p className="small soft">
          {strings.balanceEnds} <OnDay at={seen.until} />.
        </p>
      );
    default:
      return (
        <p className="small soft">
          {seen.kind === 'allowance-ended' ? (
            strings.allowanceEnded
          ) : (
            <>
              {strings.allowanceEnds} <OnDay at={seen.until} />.
            </>
          )}{' '}
          {strings.after[seen.kind][seen.next]}
          {seen.next === 'refused' && resetsAt && (
            <>
              {' '}
              {strings.until} <OnDay at={resetsAt} />
            </>
          )}
          {seen.kind === 'allowance-ended' && seen.next === 'top-up' && seen.until && (
            <>
              {strings.atThisPaceUntil} <OnDay at={seen.until} />
            </>
          )}
          .
        </p>
      );
  }
}
