import type { Account, User } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { meQuery } from '../api/queries';
import { CompanyDialog } from '../company/CompanyDialog';
import { strings as companyStrings } from '../company/strings';
import { useSignOut } from '../signin/useSignOut';
import { Badge } from '../ui/Badge';
import { Button, buttonClass } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Day } from '../ui/Time';
import { SectionHead } from './SectionHead';
import { strings } from './strings';

const words = strings.profile;

export function Profile() {
  const { data, error } = useQuery(meQuery);
  return (
    <>
      <SectionHead title={words.name} hint={words.hint} />
      {error && <ErrorNotice error={error} />}
      {!data && !error && <Loading />}
      {data && (
        <>
          <You user={data.user} />
          <ThisAccount account={data.account} />
          <Accounts accounts={data.accounts} current={data.account.id} />
        </>
      )}
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

const given = (text: string | null) =>
  text ? <SafeText>{text}</SafeText> : <span className="faint">{words.none}</span>;

function You({ user }: { user: User }) {
  const signOut = useSignOut();
  return (
    <section className="card" aria-labelledby="profile-you">
      <div className="card-head">
        <h3 id="profile-you">{words.you}</h3>
        <span className="push">
          <button type="button" className={buttonClass({ size: 's' })} onClick={signOut}>
            {strings.sessions.signOut}
          </button>
        </span>
      </div>
      <dl className="lines">
        <Line name={words.fullName}>{given(user.name)}</Line>
        <Line name={words.email}>{given(user.email)}</Line>
        <Line name={words.userId}>
          <code>{user.id}</code>
          <CopyButton text={user.id} label={words.copyUser} />
        </Line>
        <Line name={words.since}>
          <Day at={user.createdAt} />
        </Line>
      </dl>
    </section>
  );
}

const tierName = (tier: string) => tier.charAt(0) + tier.slice(1).toLowerCase();

function ThisAccount({ account }: { account: Account }) {
  return (
    <section className="card" aria-labelledby="profile-account">
      <div className="card-head">
        <h3 id="profile-account">{words.account}</h3>
      </div>
      <dl className="lines">
        <Line name={words.accountName}>
          <SafeText>{account.name}</SafeText>
        </Line>
        <Line name={words.kind}>{words.kinds[account.kind]}</Line>
        <Line name={words.role}>{words.roles[account.role]}</Line>
        <Line name={words.tier}>{tierName(account.tier)}</Line>
        <Line name={words.accountId}>
          <code>{account.id}</code>
          <CopyButton text={account.id} label={words.copyAccount} />
        </Line>
      </dl>
    </section>
  );
}

function Accounts({ accounts, current }: { accounts: Account[]; current: string }) {
  const [creating, setCreating] = useState(false);
  return (
    <section className="card" aria-labelledby="profile-accounts">
      <div className="card-head">
        <h3 id="profile-accounts">{words.accounts}</h3>
        <span className="push">
          <Button size="s" icon="plus" onClick={() => setCreating(true)}>
            {companyStrings.create}
          </Button>
        </span>
      </div>
      <ul className="lines">
        {accounts.map((account) => (
          <li key={account.id} className="line-row">
            <span className="strong clip">
              <SafeText>{account.name}</SafeText>
            </span>
            <span className="small soft">
              {words.kinds[account.kind]} · {tierName(account.tier)}
            </span>
            <span className="push">
              {account.id === current ? (
                <Badge tone="accent">{words.shown}</Badge>
              ) : (
                <Link
                  className={buttonClass({ size: 's' })}
                  to="/$account"
                  params={{ account: account.id }}
                >
                  {words.open}
                  <span className="sr"> {account.name}</span>
                </Link>
              )}
            </span>
          </li>
        ))}
      </ul>
      {creating && <CompanyDialog onClose={() => setCreating(false)} />}
    </section>
  );
}
