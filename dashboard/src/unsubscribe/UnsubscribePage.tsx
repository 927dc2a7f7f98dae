import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect, useState } from 'react';
import { api } from '../api/client';
import { Button, buttonClass } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { Logo } from '../ui/Logo';
import { ErrorNotice } from '../ui/Notice';
import { strings } from './strings';

/** What the link in an email opens, without a sign-in. Only the button changes something. */
export function UnsubscribePage() {
  const [token] = useState(() => window.location.hash.replace(/^#/, ''));
  useEffect(() => {
    document.title = `${strings.title} · ${strings.product}`;
    return () => {
      document.title = strings.product;
    };
  }, []);
  return (
    <main className="signin">
      <div className="card signin-card">
        <Logo className="figure" />
        {token ? (
          <Asked token={token} />
        ) : (
          <Text title={strings.missingTitle} hint={strings.missingHint} />
        )}
      </div>
    </main>
  );
}

function Asked({ token }: { token: string }) {
  const { data, error } = useQuery({
    queryKey: ['unsubscribe', token],
    queryFn: () => api.notifications.getUnsubscribe(token),
  });
  const turnOff = useMutation({ mutationFn: () => api.notifications.unsubscribe(token) });
  if (!data) return error ? <ErrorNotice error={error} /> : <Loading />;
  if (!data.subscribed || turnOff.isSuccess) {
    return (
      <Text title={strings.doneTitle} hint={strings.doneHint}>
        <Link className={buttonClass({ size: 'l', block: true })} to="/">
          {strings.toRota}
        </Link>
      </Text>
    );
  }
  return (
    <Text title={strings.title} hint={strings.kinds[data.kind]}>
      {turnOff.error && <ErrorNotice error={turnOff.error} />}
      <Button
        look="primary"
        size="l"
        block
        busy={turnOff.isPending}
        onClick={() => turnOff.mutate()}
      >
        {strings.action}
      </Button>
    </Text>
  );
}

function Text({ title, hint, children }: { title: string; hint: string; children?: ReactNode }) {
  return (
    <>
      <div className="stack">
        <h1>{title}</h1>
        <p className="soft">{hint}</p>
      </div>
      {children}
    </>
  );
}
