import type { Tier } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { meQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { Icon } from '../ui/Icon';
import { strings, tierName } from './strings';
import { needsCompany } from './tiers';

/** What a locked agent needs, and the way there, if there is one from this account. */
export function LockLink({ tier }: { tier: Tier }) {
  const account = useAccount();
  const kind = useQuery(meQuery).data?.account.kind;
  if (needsCompany(tier, kind)) {
    return (
      <span className="lock-row" title={strings.lockedCompany}>
        <Icon name="lock" small />
        <span>{strings.forCompanies(tierName(tier))}</span>
      </span>
    );
  }
  return (
    <Link className="lock-row" to="/$account/money" params={{ account }} hash="plan">
      <Icon name="lock" small />
      <span>{strings.opensWith(tierName(tier))}</span>
    </Link>
  );
}
