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
      <ConnectionMark quiet />
      <SettingsOnPhone />
    </header>
  );
}

/** A phone has no rail, so the way to the settings is here. */
export function SettingsOnPhone() {
  const account = useAccount();
  const { data } = useQuery(meQuery);
  return (
    <Link
      className="only-phone topbar-me"
      to="/$account/settings/$section"
      params={{ account, section: 'profile' }}
    >
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
  to: '/$account' | '/$account/tasks' | '/$account/agents' | '/$account/servers';
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
      <ConnectionMark quiet />
    </header>
  );
}

/** Whether the screen is live. `quiet` shows only that it is not. */
export function ConnectionMark({ quiet }: { quiet?: boolean }) {
  const connection = useConnection();
  if (connection === 'live') {
    if (quiet) return null;
    return (
      <span className="row tiny faint">
        <span className="live-dot" aria-hidden="true" />
        {strings.live}
      </span>
    );
  }
  if (quiet && connection === 'connecting') return null;
  return (
    <span className="badge badge-wait" role="status">
      {connection === 'offline' ? strings.offline : strings.connecting}
    </span>
  );
}
