import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { meQuery } from '../api/queries';
import { useSignOut } from '../signin/useSignOut';
import { Avatar } from '../ui/AgentMark';
import { Menu } from '../ui/Menu';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

/** Who is signed in, in which account; switching accounts and signing out. */
export function PersonMenu({ account }: { account: string }) {
  const { data } = useQuery(meQuery);
  const navigate = useNavigate();
  const signOut = useSignOut();
  if (!data) return null;
  const name = data.user.name ?? data.user.email ?? 'You';
  return (
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
  );
}
