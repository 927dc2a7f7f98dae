import type { Member, Role } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { ErrorNotice } from '../ui/Notice';
import { visible } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { changeMember } from './data';
import { RoleFields } from './RoleFields';
import { changeOf, nameOf } from './rules';
import { strings } from './strings';

/** The role of a member, and the right to approve. */
export function ChangeDialog({
  company,
  member,
  roles,
  onClose,
}: {
  company: string;
  member: Member;
  roles: Role[];
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const [role, setRole] = useState(member.role);
  // Who becomes a member cannot approve by itself.
  const [approver, setApprover] = useState(member.role === 'member' && member.approver);
  const name = visible(nameOf(member));
  const change = useMutation({
    mutationFn: () => changeMember(company, member.userId, changeOf(role, approver)),
    onSuccess: () => {
      onClose();
      toast(strings.changed(name));
      // The own role may be another one now.
      cache.invalidateQueries({ queryKey: keys.me });
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.company }),
  });
  return (
    <Dialog
      title={strings.changeTitle(name)}
      onClose={onClose}
      onSubmit={() => !change.isPending && change.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={change.isPending}>
            {strings.save}
          </Button>
        </>
      }
    >
      <RoleFields
        roles={roles}
        role={role}
        approver={approver}
        onChange={(newRole, newApprover) => {
          setRole(newRole);
          setApprover(newApprover);
        }}
      />
      {change.error && <ErrorNotice error={change.error} />}
    </Dialog>
  );
}
