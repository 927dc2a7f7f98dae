import type { ReceivedInvitation, User } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate, useRouter } from '@tanstack/react-router';
import { type ReactNode, useEffect, useRef } from 'react';
import { newIdempotencyKey } from '../api/client';
import { useSignOut } from '../signin/useSignOut';
import { Button, buttonClass } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { Logo } from '../ui/Logo';
import { ErrorNotice, Notice } from '../ui/Notice';
import { SafeText, visible } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { ToastRegion } from '../ui/toast';
import { accept, receivedQuery } from './data';
import { failureOf } from './failure';
import { strings } from './strings';
import { forgetToken } from './token';

const route = getRouteApi('/invitation');

/** What the link of an invitation opens, for a person who is signed in. */
export function InvitationPage() {
  const { token } = route.useRouteContext();
  useEffect(() => {
    document.title = `${strings.accept} · ${strings.product}`;
    return () => {
      document.title = strings.product;
    };
  }, []);
  return (
    <main className="signin">
      <div className="card signin-card invitation">
        <Logo className="figure" />
        {token ? (
          <Received key={token} token={token} />
        ) : (
          <Ended title={strings.missingTitle} hint={strings.missingHint} />
        )}
      </div>
      <ToastRegion />
    </main>
  );
}

function Received({ token }: { token: string }) {
  const { me } = route.useRouteContext();
  const { data, error } = useQuery(receivedQuery(token));
  if (error && failureOf(error) === 'gone') return <Gone />;
  if (!data) return error ? <ErrorNotice error={error} /> : <Loading />;
  const joined = me.accounts.find((account) => account.id === data.accountId);
  if (joined) return <Joined account={joined} />;
  return <Offer token={token} invitation={data} user={me.user} />;
}

function Offer({
  token,
  invitation,
  user,
}: {
  token: string;
  invitation: ReceivedInvitation;
  user: User;
}) {
  const navigate = useNavigate();
  const router = useRouter();
  const cache = useQueryClient();
  const key = useRef(newIdempotencyKey());
  const join = useMutation({
    mutationFn: () => accept(token, key.current),
    onSuccess: async ({ id }) => {
      forgetToken();
      cache.clear();
      await navigate({ to: '/$account', params: { account: id }, replace: true });
    },
    // Who has become a member in another tab sees it.
    onError: (error) => failureOf(error) === 'seats' && router.invalidate(),
  });
  const { accountName, role, approver, invitedBy, expiresAt } = invitation;
  if (join.error && failureOf(join.error) === 'gone') return <Gone />;
  const needsOther = join.error !== null && failureOf(join.error) === 'address';
  return (
    <>
      <div className="stack">
        <h1>
          <SafeText>{strings.title(accountName)}</SafeText>
        </h1>
        <p className="soft">
          <SafeText>{strings.lead(invitedBy ?? strings.someone)}</SafeText>
        </p>
      </div>
      <dl className="lines">
        <Line name={strings.company}>
          <SafeText>{accountName}</SafeText>
        </Line>
        <Line name={strings.role}>
          {strings.roles[role]}
          {role === 'member' && approver && <span className="soft">· {strings.approves}</span>}
        </Line>
        <Line name={strings.inviter}>
          {invitedBy ? <SafeText>{invitedBy}</SafeText> : strings.unknown}
        </Line>
        <Line name={strings.expires}>
          <Ago at={expiresAt} />
        </Line>
        <Line name={strings.signedInAs}>
          <SafeText>{user.email ?? user.name ?? user.id}</SafeText>
        </Line>
      </dl>
      {join.error && <Problem error={join.error} />}
      <div className="stack">
        <Button
          look={needsOther ? 'normal' : 'primary'}
          size="l"
          block
          busy={join.isPending || join.isSuccess}
          onClick={() => join.mutate()}
        >
          {strings.accept}
        </Button>
        <OtherAddress look={needsOther ? 'primary' : 'normal'} />
      </div>
    </>
  );
}

/** A name and its value. */
function Line({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="line">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The token stays in this tab, so the page opens again after the sign-in. */
function OtherAddress({ look }: { look: 'primary' | 'normal' }) {
  const signOut = useSignOut('/invitation');
  return (
    <Button look={look} size="l" block onClick={signOut}>
      {strings.otherAccount}
    </Button>
  );
}

function Problem({ error }: { error: Error }) {
  const failure = failureOf(error);
  if (failure !== 'address' && failure !== 'seats') return <ErrorNotice error={error} />;
  const isAddress = failure === 'address';
  return (
    <div role="alert">
      <Notice tone="wait" title={isAddress ? strings.addressTitle : strings.seatsTitle}>
        {/* The API says which address the caller has, or that none is verified. */}
        <SafeText>{isAddress ? error.message : strings.seatsHint}</SafeText>
      </Notice>
    </div>
  );
}

function Joined({ account }: { account: { id: string; name: string } }) {
  useEffect(forgetToken, []);
  return (
    <Ended title={strings.memberTitle(visible(account.name))} hint={strings.memberHint}>
      <Link
        className={buttonClass({ look: 'primary', size: 'l', block: true })}
        to="/$account"
        params={{ account: account.id }}
      >
        <SafeText>{strings.open(account.name)}</SafeText>
      </Link>
    </Ended>
  );
}

function Gone() {
  useEffect(forgetToken, []);
  return <Ended title={strings.goneTitle} hint={strings.goneHint} />;
}

function Ended({ title, hint, children }: { title: string; hint: string; children?: ReactNode }) {
  return (
    <>
      <div className="stack">
        <h1>{title}</h1>
        <p className="soft">{hint}</p>
      </div>
      {children ?? (
        <Link className={buttonClass({ size: 'l', block: true })} to="/">
          {strings.toRota}
        </Link>
      )}
    </>
  );
}
