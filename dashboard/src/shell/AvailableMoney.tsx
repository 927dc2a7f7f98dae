import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { partsOf } from '../api/balance';
import { balanceQuery } from '../api/queries';
import { cents } from '../ui/format';
import { Cents, Meter } from '../ui/Money';
import { strings } from './strings';

export function AvailableMoney({ account }: { account: string }) {
  const { data } = useQuery(balanceQuery);
  if (!data) return null;
  const { usageBar, hasAllowance } = data;
  const { held } = partsOf(data);
  return (
    <Link className="rail-money" to="/$account/money" params={{ account }}>
      <span className="row small">
        <span className="soft">{strings.available}</span>
        <span className="strong push">
          <Cents value={data.totalAvailable} />
        </span>
      </span>
      {hasAllowance && (
        <>
          <Meter
            used={usageBar.used}
            held={Math.min(held, usageBar.remaining)}
            total={usageBar.total}
            label={strings.allowanceUsed(usageBar.percent)}
          />
          <span className="tiny faint">{strings.allowanceLeft(cents(usageBar.remaining))}</span>
        </>
      )}
      {held > 0 && <span className="tiny faint">{strings.heldByTasks(cents(held))}</span>}
    </Link>
  );
}
