import type { Issuer } from '@rota/sdk';
import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { issuersQuery } from '../api/queries';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { Logo } from '../ui/Logo';
import { ErrorNotice, Notice } from '../ui/Notice';
import { leave } from './oidc';
import { strings } from './strings';

const route = getRouteApi('/signin');

export function SignIn() {
  const { next } = route.useSearch();
  const config = useQuery(issuersQuery);
  const start = useMutation({ mutationFn: (issuer: Issuer) => leave(issuer, next ?? '/') });
  const issuers = config.data?.issuers;
  return (
    <main className="signin">
      <div className="card signin-card">
        <Logo className="figure" />
        <div className="stack">
          <h1>{strings.title}</h1>
          <p className="soft">{strings.lead}</p>
        </div>
        {config.isPending && <Loading />}
        {config.error && <ErrorNotice error={config.error} />}
        {start.error && <ErrorNotice error={start.error} />}
        {issuers?.length === 0 && <Notice tone="wait">{strings.none}</Notice>}
        <div className="stack">
          {issuers?.map((issuer) => (
            <div key={issuer.issuer} className="stack">
              <Button
                look={issuers.length === 1 ? 'primary' : 'normal'}
                size="l"
                block
                busy={start.isPending || start.isSuccess}
                disabled={!issuer.authorizationEndpoint}
                onClick={() => start.mutate(issuer)}
              >
                {strings.continueWith(issuer.name)}
              </Button>
              {!issuer.authorizationEndpoint && <p className="hint">{strings.unreachable}</p>}
            </div>
          ))}
        </div>
      </div>
    </main>
  );
}
