import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { comeBack } from './oidc';
import { noteRenewal } from './renewal';
import { strings } from './strings';

export function Callback() {
  const navigate = useNavigate();
  const cache = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const started = useRef(false);
  useEffect(() => {
    // A code works once, and React may run an effect twice.
    if (started.current) return;
    started.current = true;
    comeBack(new URLSearchParams(location.search)).then((next) => {
      noteRenewal();
      cache.clear();
      navigate({ href: next, replace: true });
    }, setError);
  }, [cache, navigate]);
  return (
    <main className="signin">
      <div className="card signin-card">
        {error ? (
          <ErrorNotice
            error={error}
            actions={
              <Button onClick={() => navigate({ to: '/signin', search: { next: '/' } })}>
                {strings.again}
              </Button>
            }
          />
        ) : (
          <Loading>{strings.finishing}</Loading>
        )}
      </div>
    </main>
  );
}
