import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { strings } from './strings';
import { useTakesPayments } from './useTakesPayments';

/** Links to the money screen. */
export function TopUpLink({ className }: { className: string }) {
  const account = useAccount();
  const takesPayments = useTakesPayments();
  return (
    <Link className={className} to="/$account/money" params={{ account }}>
      {takesPayments === false ? strings.seeBalance : strings.topUp}
    </Link>
  );
}
