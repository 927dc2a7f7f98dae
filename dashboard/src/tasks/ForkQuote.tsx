import type { ForkTask } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { cents, roundedDown } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { forkQuoteQuery } from './forks';
import { strings } from './strings';

const { fork: words } = strings;

/** What the fork holds of the balance. */
export function ForkQuote({ id, body }: { id: string; body: ForkTask }) {
  const account = useAccount();
  const { data, error } = useQuery(forkQuoteQuery(id, body));
  if (error) return <ErrorNotice error={error} />;
  if (!data) return <p className="small soft">{words.quoting}</p>;
  const { budgetCents, balance } = data.quote;
  const amounts = [cents(budgetCents), roundedDown(balance.availableUsd)] as const;
  if (balance.covered) return <p className="small soft">{words.held(...amounts)}</p>;
  return (
    <p className="small">
      {words.missing(...amounts)}{' '}
      <Link className="link" to="/$account/money" params={{ account }}>
        {strings.topUp}
      </Link>
    </p>
  );
}
