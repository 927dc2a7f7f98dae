import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { meQuery } from '../api/queries';
import { useSignOut } from '../signin/useSignOut';
import { Avatar } from '../ui/AgentMark';
import { Menu } from '../ui/Menu';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

const CompanyDialog = lazy(() =>
  import('../company/CompanyDialog').then(({ CompanyDialog }) => ({ default: CompanyDialog })),
);

/** Who is signed in, in which account; switching and creating accounts, and signing out. */
export function PersonMenu({ account }: { account: string }) {
  const { data } = useQuery(meQuery);
  const navigate = useNavigate();
  const signOut = useSignOut();
  const [creating, setCreating] = useState(false);
  if (!data) return null;
  const name = data.user.name ?? data.user.email ?? 'You';
  return (
    <>
      <Menu
        label={strings.personAndAccount}
        look="quiet"
        className="person"
        actions={[
          ...data.accounts.map((each) => ({
            label: each.name,
            checked: each.id === account,
            onSelect: () => navigate({ to: '/$account', params: { account: each.id } }),
          })),
          { label: strings.newCompany, icon: 'plus' as const, onSelect: () => setCreating(true) },
          { label: strings.signOut, icon: 'ext' as const, onSelect: signOut },
        ]}
      >
        <Avatar name={name} />
        <span className="who clip">
          <span className="small strong">
            <SafeText>{name}</SafeText>
          </span>{' '}
          <br />
          <span className="tiny faint">
            <SafeText>{data.account.name}</SafeText>
          </span>
        </span>{' '}
        <span className="sr">{strings.personAndAccount}</span>
      </Menu>
      {creating && (
        <Suspense>
          <CompanyDialog onClose={() => setCreating(false)} />
        </Suspense>
      )}
    </>
  );
}
