import type { ForkTask } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { TopUpLink } from '../money/TopUpLink';
import { cents, roundedDown } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { forkQuoteQuery } from './forks';
import { strings } from './strings';

const { fork: words } = strings;

/** What the fork holds of the balance. */
export function ForkQuote({ id, body }: { id: string; body: ForkTask }) {
  const { data, error } = useQuery(forkQuoteQuery(id, body));
  if (error) return <ErrorNotice error={error} />;
  if (!data) return <p className="small soft">{words.quoting}</p>;
  const { budgetCents, balance } = data.quote;
  const amounts = [cents(budgetCents), roundedDown(balance.availableUsd)] as const;
  if (balance.covered) return <p className="small soft">{words.held(...amounts)}</p>;
  return (
    <p className="small">
      {words.missing(...amounts)} <TopUpLink className="link" />
    </p>
  );
}
