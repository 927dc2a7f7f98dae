import type { Tier } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { Icon } from '../ui/Icon';
import { strings, tierName } from './strings';

/** What a locked agent needs, and the way there. */
export function LockLink({ tier }: { tier: Tier }) {
  const account = useAccount();
  return (
    <Link className="lock-row" to="/$account/money" params={{ account }} hash="plan">
      <Icon name="lock" small />
      <span>{strings.opensWith(tierName(tier))}</span>
    </Link>
  );
}
