import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Navigate } from '@tanstack/react-router';
import { meQuery } from '../api/queries';
import { canManage } from '../members/rules';
import { useAccount } from '../shell/account';
import { TopBar } from '../shell/TopBar';
import { Icon } from '../ui/Icon';
import { useWide } from '../ui/wide';
import { groups, type Section } from './sections';
import { strings } from './strings';

const route = getRouteApi('/$account/settings/$section');

/** The sections that this person has in this account, by group. */
function useGroups(): typeof groups {
  const current = useQuery(meQuery).data?.account;
  const isHere = ({ kind, managed }: Section) =>
    (kind === undefined || kind === current?.kind) &&
    (!managed || (current !== undefined && canManage(current.role)));
  return groups.map(({ name, sections }) => ({ name, sections: sections.filter(isHere) }));
}

function SectionList() {
  const account = useAccount();
  return (
    <nav className="subnav" aria-label={strings.settings}>
      {useGroups().map((group) => (
        <div key={group.name} className="subnav-group">
          <h2 className="tiny faint" id={`settings-${group.name}`}>
            {group.name}
          </h2>
          <ul aria-labelledby={`settings-${group.name}`}>
            {group.sections.map((each) => (
              <li key={each.name}>
                <Link
                  className="rail-item"
                  to="/$account/settings/$section"
                  params={{ account, section: each.name }}
                >
                  <Icon name={each.icon} />
                  <span>{each.label}</span>
                  <span className="only-phone push">
                    <Icon name="right" small />
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function ToProfile() {
  const account = useAccount();
  return (
    <Navigate to="/$account/settings/$section" params={{ account, section: 'profile' }} replace />
  );
}

/** On a phone, the list of the sections. Where there is room, it stands beside each section. */
export function SettingsHome() {
  if (useWide()) return <ToProfile />;
  return (
    <main className="main" id="main">
      <TopBar title={strings.settings} />
      <div className="settings">
        <SectionList />
      </div>
    </main>
  );
}

export function Settings() {
  const { account, section } = route.useParams();
  const wide = useWide();
  const found = useGroups()
    .flatMap((group) => group.sections)
    .find((each) => each.name === section);
  if (!found) return <ToProfile />;
  const Page = found.page;
  const back = (
    <Link className="settings-back" to="/$account/settings" params={{ account }}>
      <Icon name="left" />
      {strings.settings}
    </Link>
  );
  return (
    <main className="main" id="main">
      <TopBar title={wide ? strings.settings : back} />
      <div className="settings">
        {wide && <SectionList />}
        <div className="stack-6 settings-body">
          <Page />
        </div>
      </div>
    </main>
  );
}
