import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { meQuery } from '../api/queries';
import { useConnection } from '../live/LiveProvider';
import { Avatar } from '../ui/AgentMark';
import { Icon } from '../ui/Icon';
import { useAccount } from './account';
import { strings } from './strings';

/** The bar at the top of a screen: its name and what can be done with it. */
export function TopBar({ title, children }: { title: ReactNode; children?: ReactNode }) {
  return (
    <header className="topbar">
      <h1>{title}</h1>
      {children}
      <SettingsOnPhone />
    </header>
  );
}

/** A phone has no rail, so the way to the settings is here. */
export function SettingsOnPhone() {
  const account = useAccount();
  const { data } = useQuery(meQuery);
  return (
    <Link className="only-phone topbar-me" to="/$account/settings" params={{ account }}>
      <Avatar name={data?.user.name ?? data?.user.email ?? ''} />
      <span className="sr">{strings.settingsAndAccount}</span>
    </Link>
  );
}

/** The bar of a screen below another one: "Tasks › Answer Jonas". */
export function CrumbBar({
  to,
  parent,
  here,
  children,
}: {
  to:
    | '/$account'
    | '/$account/tasks'
    | '/$account/schedules'
    | '/$account/agents'
    | '/$account/servers';
  parent: string;
  here: ReactNode;
  children?: ReactNode;
}) {
  const account = useAccount();
  return (
    <header className="topbar">
      <nav className="crumbs small" aria-label="Breadcrumb">
        <Link to={to} params={{ account }}>
          {parent}
        </Link>
        <Icon name="right" small />
        <span className="clip" aria-current="page">
          {here}
        </span>
      </nav>
      <span className="row push">{children}</span>
    </header>
  );
}

/** Whether the screen is live. That it is not stands above every screen. */
export function ConnectionMark() {
  const connection = useConnection();
  if (connection === 'offline') return null;
  if (connection === 'live') {
    return (
      <span className="row tiny faint">
        <span className="live-dot" aria-hidden="true" />
        {strings.live}
      </span>
    );
  }
  return (
    <span className="row tiny faint" role="status">
      {strings.connecting}
    </span>
  );
}

/** Stands above every screen while there is no connection. */
export function OfflineBar() {
  const offline = useConnection() === 'offline';
  return (
    <p className={offline ? 'offline-bar small' : 'sr'} role="status">
      {offline && (
        <>
          <Icon name="alert" small />
          {strings.offline}
        </>
      )}
    </p>
  );
}
