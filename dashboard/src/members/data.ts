/** What the API knows about a company: its seats, its members and its open invitations. */
import { type CreateInvitation, errors, type Invitation, type PatchMember } from '@rota/sdk';
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

const PAGE = 100;

export const companyQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.company, 'seats', id],
    queryFn: () => api.companies.get(id),
  });

/** The members, in the order in which they joined. */
export const membersQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.company, 'members', id],
    queryFn: ({ pageParam }) =>
      api.companies.members(id, { limit: PAGE, offset: pageParam }).firstPage(),
    initialPageParam: 0,
    getNextPageParam: ({ members, total }, _, offset) =>
      members.length && offset + PAGE < total ? offset + PAGE : undefined,
  });

/** The open invitations, newest first. */
export const invitationsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.company, 'invitations', id],
    queryFn: ({ pageParam }) =>
      api.companies.invitations(id, { limit: PAGE, offset: pageParam }).firstPage(),
    initialPageParam: 0,
    getNextPageParam: ({ invitations, total }, _, offset) =>
      invitations.length && offset + PAGE < total ? offset + PAGE : undefined,
  });

export const changeMember = (id: string, userId: string, body: PatchMember) =>
  api.companies.updateMember(id, userId, body);

export const removeMember = (id: string, userId: string) => api.companies.removeMember(id, userId);

export const invite = (id: string, body: CreateInvitation, key: string) =>
  api.companies.invite(id, body, { idempotencyKey: key });

export const revokeInvitation = (id: string, invitationId: string) =>
  api.companies.deleteInvitation(id, invitationId);

/** Only the first answer had the link. A new one needs a new invitation, and the old one ends. */
export async function replaceInvitation(id: string, old: Invitation, key: string) {
  try {
    await revokeInvitation(id, old.id);
  } catch (error) {
    // An attempt whose second part failed has ended it already.
    if (!(error instanceof errors.NotFoundError)) throw error;
  }
  const { email, role, approver } = old;
  return invite(id, { email, role, approver: role === 'member' && approver }, key);
}
