import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { offerQuery } from './queries';
import { strings } from './strings';

/** The way to more money. */
export function TopUpLink({ className }: { className: string }) {
  const account = useAccount();
  const { data: offer } = useQuery(offerQuery);
  return (
    <Link className={className} to="/$account/money" params={{ account }}>
      {offer?.takesPayments === false ? strings.seeBalance : strings.topUp}
    </Link>
  );
}
