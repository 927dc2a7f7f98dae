import { useQuery } from '@tanstack/react-query';
import { Link, useMatchRoute } from '@tanstack/react-router';
import type { ComponentType } from 'react';
import { runningQuery, serversQuery } from '../api/queries';
import { Icon, type IconName } from '../ui/Icon';
import { Logo } from '../ui/Logo';
import { AvailableMoney } from './AvailableMoney';
import { useWaitingCount } from './counts';
import { PersonMenu } from './PersonMenu';
import { strings } from './strings';

interface Place {
  to:
    | '/$account'
    | '/$account/tasks'
    | '/$account/schedules'
    | '/$account/agents'
    | '/$account/servers'
    | '/$account/money';
  icon: IconName;
  label: string;
  /** Its name at the bottom of a phone. */
  short?: string;
  exact?: boolean;
  Count?: ComponentType;
  /** Not at the bottom of a phone, where six have room. The screen of tasks leads there. */
  notOnPhone?: boolean;
}

function InboxCount() {
  const waiting = useWaitingCount();
  if (!waiting) return null;
  return (
    <span className="count count-on">
      {waiting}
      <span className="sr"> {strings.waiting}</span>
    </span>
  );
}

function TaskCount() {
  const running = useQuery(runningQuery).data?.total;
  if (!running) return null;
  return (
    <span className="count">
      {running}
      <span className="sr"> {strings.running}</span>
    </span>
  );
}

function ServerCount() {
  const servers = useQuery(serversQuery).data?.servers;
  const changed = servers?.filter((server) => server.status !== 'CONNECTED').length;
  if (!changed) return null;
  return (
    <span className="count count-wait">
      {changed}
      <span className="sr"> {strings.changed}</span>
    </span>
  );
}

const places: Place[] = [
  { to: '/$account', icon: 'inbox', label: strings.inbox, exact: true, Count: InboxCount },
  { to: '/$account/tasks', icon: 'tasks', label: strings.tasks, Count: TaskCount },
  { to: '/$account/schedules', icon: 'cal', label: strings.schedules, notOnPhone: true },
  { to: '/$account/agents', icon: 'agents', label: strings.agents },
  {
    to: '/$account/servers',
    icon: 'plug',
    label: strings.servers,
    short: strings.serversShort,
    Count: ServerCount,
  },
  { to: '/$account/money', icon: 'money', label: strings.money },
];

const onPhone = places.filter((place) => !place.notOnPhone);

export function Rail({ account }: { account: string }) {
  const params = { account };
  const inSettings = useMatchRoute()({ to: '/$account/settings/$section' }) !== false;
  return (
    <header className="rail">
      <Link className="brand" to="/$account" params={params}>
        <Logo />
        <span>Rota</span>
      </Link>
      <Link className="btn btn-block" to="/$account/new" params={params}>
        <Icon name="plus" />
        <span>{strings.newTask}</span>
        <span className="kbd push" aria-hidden="true">
          C
        </span>
      </Link>
      <nav aria-label="Main">
        <ul>
          {places.map((place) => (
            <li key={place.label}>
              <Link
                className="rail-item"
                to={place.to}
                params={params}
                activeOptions={{ exact: place.exact ?? false, includeSearch: false }}
              >
                <Icon name={place.icon} />
                <span>{place.label}</span>
                {place.Count && <place.Count />}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className="rail-foot">
        <AvailableMoney account={account} />
        <Link
          className="rail-item"
          to="/$account/settings/$section"
          params={{ account, section: 'profile' }}
          aria-current={inSettings ? 'page' : undefined}
        >
          <Icon name="settings" />
          <span>{strings.settings}</span>
        </Link>
        <PersonMenu account={account} />
      </div>
    </header>
  );
}

export function TabBar({ account }: { account: string }) {
  const params = { account };
  const link = (place: Place) => (
    <Link
      key={place.label}
      to={place.to}
      params={params}
      activeOptions={{ exact: place.exact ?? false, includeSearch: false }}
    >
      <Icon name={place.icon} />
      <span>{place.short ?? place.label}</span>
      {place.Count && <place.Count />}
    </Link>
  );
  return (
    <nav className="tabbar" aria-label="Main">
      {onPhone.slice(0, 2).map(link)}
      <Link to="/$account/new" params={params}>
        <Icon name="plus" />
        <span>{strings.newShort}</span>
      </Link>
      {onPhone.slice(2).map(link)}
    </nav>
  );
}
