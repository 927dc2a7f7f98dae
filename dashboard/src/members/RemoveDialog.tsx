import type { Member } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { keys } from '../api/keys';
import { ConfirmDialog } from '../settings/ConfirmDialog';
import { visible } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { removeMember } from './data';
import { nameOf } from './rules';
import { strings } from './strings';

/** Asks before a member is removed or leaves, and says what ends. */
export function RemoveDialog({
  company,
  member,
  isSelf,
  onClose,
}: {
  company: { id: string; name: string };
  member: Member;
  isSelf: boolean;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const navigate = useNavigate();
  const name = visible(nameOf(member));
  const remove = useMutation({
    mutationFn: () => removeMember(company.id, member.userId),
    onSuccess: async () => {
      onClose();
      if (isSelf) {
        toast(strings.left(visible(company.name)));
        await navigate({ to: '/' });
        return;
      }
      toast(strings.removed(name));
      cache.invalidateQueries({ queryKey: keys.company });
    },
  });
  return (
    <ConfirmDialog
      title={isSelf ? strings.leaveTitle(visible(company.name)) : strings.removeTitle(name)}
      action={isSelf ? strings.leaveAction : strings.removeAction}
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>{isSelf ? strings.leaveEnds : strings.removeEnds}</p>
      <ul className="ends">
        {strings.ends.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
      <p className="soft">{strings.stays}</p>
    </ConfirmDialog>
  );
}
