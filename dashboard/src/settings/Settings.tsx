import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Navigate } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { meQuery } from '../api/queries';
import { canManage } from '../members/rules';
import { TopBar } from '../shell/TopBar';
import { Icon } from '../ui/Icon';
import { groups, type Section } from './sections';
import { strings } from './strings';

const route = getRouteApi('/$account/settings/$section');

export function Settings() {
  const { account, section } = route.useParams();
  const current = useQuery(meQuery).data?.account;
  const nav = useRef<HTMLElement>(null);
  // On a phone, the sections are a strip that scrolls.
  useEffect(() => {
    const here = nav.current?.querySelector(`[href$="/${section}"]`);
    here?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [section]);
  const isHere = ({ kind, managed }: Section) =>
    (kind === undefined || kind === current?.kind) &&
    (!managed || (current !== undefined && canManage(current.role)));
  const found = groups
    .flatMap((group) => group.sections)
    .find((each) => each.name === section && isHere(each));
  if (!found) {
    return (
      <Navigate to="/$account/settings/$section" params={{ account, section: 'profile' }} replace />
    );
  }
  const Page = found.page;
  return (
    <main className="main" id="main">
      <TopBar title={strings.settings} />
      <div className="settings">
        <nav ref={nav} className="subnav" aria-label={strings.settings}>
          {groups.map((group) => (
            <div key={group.name} className="subnav-group">
              <h2 className="tiny faint" id={`settings-${group.name}`}>
                {group.name}
              </h2>
              <ul aria-labelledby={`settings-${group.name}`}>
                {group.sections.filter(isHere).map((each) => (
                  <li key={each.name}>
                    <Link
                      className="rail-item"
                      to="/$account/settings/$section"
                      params={{ account, section: each.name }}
                    >
                      <Icon name={each.icon} />
                      <span>{each.label}</span>
                    </Link>
                  </li>
                ))}
              </ul>
            </div>
          ))}
        </nav>
        <div className="stack-6 settings-body">
          <Page />
        </div>
      </div>
    </main>
  );
}
