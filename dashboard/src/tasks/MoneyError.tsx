import { APIError } from '@rota/sdk';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { buttonClass } from '../ui/Button';
import { ErrorNotice } from '../ui/Notice';
import { strings } from './strings';

/** An error of a request that holds money. If the balance is too low, it leads to the top-up. */
export function MoneyError({ error }: { error: unknown }) {
  const account = useAccount();
  const isMoney = error instanceof APIError && error.status === 402;
  return (
    <ErrorNotice
      error={error}
      actions={
        isMoney && (
          <Link className={buttonClass({})} to="/$account/money" params={{ account }}>
            {strings.topUp}
          </Link>
        )
      }
    />
  );
}
