import type { Invitation, InvitedResponse, Member, Role } from '@rota/sdk';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { ConfirmDialog } from '../settings/ConfirmDialog';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { invitationsQuery, replaceInvitation, revokeInvitation } from './data';
import { InvitationTable } from './InvitationTable';
import { More } from './More';
import { nameOf } from './rules';
import { strings } from './strings';

/** The open invitations of a company, for those who manage its members. */
export function Invitations({
  company,
  members,
  roles,
  onInvited,
  onRevoked,
}: {
  company: string;
  members: Member[];
  /** The roles that the caller can give. */
  roles: Role[];
  onInvited: (invited: InvitedResponse) => void;
  onRevoked: (invitation: Invitation) => void;
}) {
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    invitationsQuery(company),
  );
  const [revoking, setRevoking] = useState<Invitation | null>(null);
  const [replacing, setReplacing] = useState<Invitation | null>(null);
  const invitations = data?.pages.flatMap((page) => page.invitations) ?? [];
  const total = data?.pages.at(-1)?.total ?? 0;
  const names = new Map(members.map((member) => [member.userId, nameOf(member)]));
  return (
    <section className="card" aria-labelledby="invitations">
      <div className="card-head">
        <h3 id="invitations">{strings.invitations}</h3>
        {data && <Badge>{total}</Badge>}
      </div>
      {error && (
        <div className="card-pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {!data && !error && <Loading />}
      {data && total === 0 && <p className="card-pad soft">{strings.noInvitations}</p>}
      {invitations.length > 0 && (
        <InvitationTable
          invitations={invitations}
          nameOfUser={(userId) => names.get(userId)}
          canReplace={({ role }) => roles.includes(role)}
          onReplace={setReplacing}
          onRevoke={setRevoking}
        />
      )}
      {hasNextPage && (
        <More
          shown={invitations.length}
          total={total}
          busy={isFetchingNextPage}
          onMore={fetchNextPage}
        />
      )}
      {revoking && (
        <RevokeDialog
          company={company}
          invitation={revoking}
          onRevoked={onRevoked}
          onClose={() => setRevoking(null)}
        />
      )}
      {replacing && (
        <ReplaceDialog
          company={company}
          invitation={replacing}
          onInvited={onInvited}
          onClose={() => setReplacing(null)}
        />
      )}
    </section>
  );
}

function RevokeDialog({
  company,
  invitation,
  onRevoked,
  onClose,
}: {
  company: string;
  invitation: Invitation;
  onRevoked: (invitation: Invitation) => void;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeInvitation(company, invitation.id),
    onSuccess: () => {
      onRevoked(invitation);
      onClose();
      toast(strings.revoked);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.company }),
  });
  return (
    <ConfirmDialog
      title={strings.revokeTitle}
      action={strings.revokeAction}
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        <b>
          <SafeText>{invitation.email}</SafeText>
        </b>{' '}
        {strings.revokeEffect}
      </p>
    </ConfirmDialog>
  );
}

function ReplaceDialog({
  company,
  invitation,
  onInvited,
  onClose,
}: {
  company: string;
  invitation: Invitation;
  onInvited: (invited: InvitedResponse) => void;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const key = useRef(newIdempotencyKey());
  const replace = useMutation({
    gcTime: 0,
    mutationFn: () => replaceInvitation(company, invitation, key.current),
    onSuccess: (invited) => {
      onInvited(invited);
      onClose();
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.company }),
  });
  return (
    <Dialog
      title={strings.linkTitle}
      onClose={onClose}
      onSubmit={() => !replace.isPending && replace.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={replace.isPending}>
            {strings.linkAction}
          </Button>
        </>
      }
    >
      <p>
        <b>
          <SafeText>{invitation.email}</SafeText>
        </b>{' '}
        {strings.linkEffect}
      </p>
      {replace.error && <ErrorNotice error={replace.error} />}
    </Dialog>
  );
}
