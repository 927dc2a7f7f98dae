import { APIError } from '@rota/sdk';
import { Link, useRouter } from '@tanstack/react-router';
import { Button, buttonClass } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { ErrorNotice } from '../ui/Notice';
import { strings } from './strings';

const ToInbox = () => (
  <Link className={buttonClass({})} to="/">
    {strings.toInbox}
  </Link>
);

interface Failure {
  error: unknown;
  reset: () => void;
}

function Problem({ error, reset }: Failure) {
  const router = useRouter();
  // What is to be shown is loaded first, so that the same error does not come up again.
  const again = () => router.invalidate().finally(reset);
  return (
    <>
      <h1>{strings.broken}</h1>
      <ErrorNotice
        error={error}
        actions={
          <>
            <Button onClick={again}>{strings.reload}</Button>
            <ToInbox />
          </>
        }
      />
    </>
  );
}

/** An error before there is anything around a screen. */
export function Broken({ error, reset }: Failure) {
  // The account of the address is the only thing that a caller cannot be allowed to see here.
  if (error instanceof APIError && (error.status === 403 || error.status === 404)) {
    return <Missing title={strings.noAccount} hint={strings.noAccountHint} />;
  }
  return (
    <main className="signin">
      <div className="signin-card">
        <Problem error={error} reset={reset} />
      </div>
    </main>
  );
}

/** An error of one screen, inside the navigation. */
export function BrokenScreen(failure: Failure) {
  return (
    <main className="main" id="main">
      <div className="page page-narrow stack-4">
        <Problem {...failure} />
      </div>
    </main>
  );
}

function Missing({ title, hint }: { title: string; hint: string }) {
  return (
    <main className="signin">
      <Empty title={title} page>
        <p>{hint}</p>
        <ToInbox />
      </Empty>
    </main>
  );
}

export const LostAccount = () => (
  <Missing title={strings.lostAccount} hint={strings.lostAccountHint} />
);

export const NotFound = () => <Missing title={strings.notFound} hint={strings.notFoundHint} />;

/** An address of an account that leads nowhere, inside the navigation. */
export function NotFoundScreen() {
  return (
    <main className="main" id="main">
      <Empty title={strings.notFound} page>
        <p>{strings.notFoundHint}</p>
        <ToInbox />
      </Empty>
    </main>
  );
}
