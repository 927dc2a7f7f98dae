import { APIError } from '@rota/sdk';
import { TopUpLink } from '../money/TopUpLink';
import { buttonClass } from '../ui/Button';
import { ErrorNotice } from '../ui/Notice';

/** An error of a request that holds money. If the balance is too low, it leads to the top-up. */
export function MoneyError({ error }: { error: unknown }) {
  const isMoney = error instanceof APIError && error.status === 402;
  return (
    <ErrorNotice error={error} actions={isMoney && <TopUpLink className={buttonClass({})} />} />
  );
}
