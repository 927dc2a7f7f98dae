import type { Invitation } from '@rota/sdk';
import { Menu, type MenuAction } from '../ui/Menu';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { strings } from './strings';

export function InvitationTable({
  invitations,
  nameOfUser,
  canReplace,
  onReplace,
  onRevoke,
}: {
  invitations: Invitation[];
  nameOfUser: (userId: string) => string | undefined;
  canReplace: (invitation: Invitation) => boolean;
  onReplace: (invitation: Invitation) => void;
  onRevoke: (invitation: Invitation) => void;
}) {
  return (
    <table className="table table-keys table-members" aria-labelledby="invitations">
      <thead>
        <tr>
          <th scope="col">{strings.address}</th>
          <th scope="col">{strings.role}</th>
          <th scope="col">{strings.invitedBy}</th>
          <th scope="col">{strings.expires}</th>
          <th scope="col">
            <span className="sr">{strings.action}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {invitations.map((invitation) => {
          const actions: MenuAction[] = [
            { label: strings.revoke, icon: 'x', onSelect: () => onRevoke(invitation) },
          ];
          if (canReplace(invitation)) {
            actions.unshift({
              label: strings.linkAgain,
              icon: 'retry',
              onSelect: () => onReplace(invitation),
            });
          }
          return (
            <tr key={invitation.id}>
              <td className="strong">
                <SafeText>{invitation.email}</SafeText>
              </td>
              <td data-l={strings.role}>
                {strings.roles[invitation.role]}
                {invitation.role === 'member' && invitation.approver && (
                  <span className="soft"> · {strings.approver}</span>
                )}
              </td>
              <td className="soft" data-l={strings.invitedBy}>
                <SafeText>{nameOfUser(invitation.createdBy) ?? strings.member}</SafeText>
              </td>
              <td className="soft" data-l={strings.expires}>
                <Ago at={invitation.expiresAt} />
              </td>
              <td className="act end">
                <Menu label={strings.manageWho(invitation.email)} size="s" actions={actions}>
                  {strings.manage}
                </Menu>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
