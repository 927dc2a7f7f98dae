import { Link } from '@tanstack/react-router';
import { Button, buttonClass } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { ErrorNotice } from '../ui/Notice';
import { strings } from './strings';

export function Broken({ error, reset }: { error: unknown; reset: () => void }) {
  return (
    <main className="signin">
      <div className="signin-card">
        <h1>{strings.broken}</h1>
        <ErrorNotice
          error={error}
          actions={
            <>
              <Button onClick={reset}>{strings.reload}</Button>
              <Link className={buttonClass({})} to="/">
                {strings.toInbox}
              </Link>
            </>
          }
        />
      </div>
    </main>
  );
}

export function NotFound() {
  return (
    <main className="signin">
      <Empty title={strings.notFound} page>
        <p>{strings.notFoundHint}</p>
        <Link className={buttonClass({})} to="/">
          {strings.toInbox}
        </Link>
      </Empty>
    </main>
  );
}
