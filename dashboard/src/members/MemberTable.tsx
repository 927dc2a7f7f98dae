import type { Member } from '@rota/sdk';
import { Avatar } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { Menu, type MenuAction } from '../ui/Menu';
import { SafeText } from '../ui/SafeText';
import { Day } from '../ui/Time';
import { nameOf, type Possible } from './rules';
import { strings } from './strings';

export interface MemberActions {
  onChange: (member: Member) => void;
  onRemove: (member: Member) => void;
}

export function MemberTable({
  members,
  me,
  can,
  ...actions
}: {
  members: Member[];
  /** The user who looks. */
  me: string;
  can: (member: Member) => Possible;
} & MemberActions) {
  return (
    <table className="table table-keys table-members" aria-labelledby="members">
      <thead>
        <tr>
          <th scope="col">{strings.member}</th>
          <th scope="col">{strings.role}</th>
          <th scope="col">{strings.approver}</th>
          <th scope="col">{strings.since}</th>
          <th scope="col">
            <span className="sr">{strings.action}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {members.map((member) => (
          <Row
            key={member.userId}
            member={member}
            isSelf={member.userId === me}
            can={can(member)}
            {...actions}
          />
        ))}
      </tbody>
    </table>
  );
}

function Row({
  member,
  isSelf,
  can,
  onChange,
  onRemove,
}: { member: Member; isSelf: boolean; can: Possible } & MemberActions) {
  const name = nameOf(member);
  const actions: MenuAction[] = [];
  if (can.change) {
    actions.push({ label: strings.change, icon: 'pencil', onSelect: () => onChange(member) });
  }
  if (can.remove || can.leave) {
    const label = isSelf ? strings.leave : strings.remove;
    actions.push({ label, icon: isSelf ? 'ext' : 'x', onSelect: () => onRemove(member) });
  }
  return (
    <tr>
      <td>
        <div className="row">
          <Avatar name={name} />
          <div className="stack-0">
            <p className="row row-wrap">
              <span className="strong">
                <SafeText>{name}</SafeText>
              </span>
              {isSelf && <Badge tone="accent">{strings.you}</Badge>}
            </p>
            {member.name && (
              <p className="faint tiny">
                {member.email ? <SafeText>{member.email}</SafeText> : strings.noAddress}
              </p>
            )}
          </div>
        </div>
      </td>
      <td data-l={strings.role}>{strings.roles[member.role]}</td>
      <td className="soft" data-l={strings.approver}>
        {member.approver ? strings.yes : strings.no}
      </td>
      <td className="soft" data-l={strings.since}>
        <Day at={member.joinedAt} />
      </td>
      <td className="act end">
        {actions.length > 0 && (
          <Menu label={strings.manageWho(name)} size="s" actions={actions}>
            {strings.manage}
          </Menu>
        )}
      </td>
    </tr>
  );
}
