/** What the API knows about a company: its seats, its members and its open invitations. */
import {
  type CreateInvitation,
  createInvitation,
  deleteInvitation,
  deleteMember,
  getCompany,
  type Invitation,
  listInvitations,
  listMembers,
  type PatchMember,
  patchMember,
} from '@rota/sdk';
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { ApiError, ok } from '../api/client';
import { keys } from '../api/keys';

const PAGE = 100;

export const companyQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.company, 'seats', id],
    queryFn: async () => (await ok(getCompany({ path: { id }, throwOnError: true }))).account,
  });

/** The members, those who joined first at the top. */
export const membersQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.company, 'members', id],
    queryFn: ({ pageParam }) =>
      ok(
        listMembers({
          path: { id },
          query: { limit: PAGE, offset: pageParam },
          throwOnError: true,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: ({ members, total }, _, offset) =>
      members.length && offset + PAGE < total ? offset + PAGE : undefined,
  });

/** The open invitations, newest first. */
export const invitationsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [...keys.company, 'invitations', id],
    queryFn: ({ pageParam }) =>
      ok(
        listInvitations({
          path: { id },
          query: { limit: PAGE, offset: pageParam },
          throwOnError: true,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: ({ invitations, total }, _, offset) =>
      invitations.length && offset + PAGE < total ? offset + PAGE : undefined,
  });

export const changeMember = (id: string, userId: string, body: PatchMember) =>
  ok(patchMember({ path: { id, userId }, body, throwOnError: true }));

export const removeMember = (id: string, userId: string) =>
  ok(deleteMember({ path: { id, userId }, throwOnError: true }));

export const invite = (id: string, body: CreateInvitation, key: string) =>
  ok(
    createInvitation({
      path: { id },
      body,
      headers: { 'Idempotency-Key': key },
      throwOnError: true,
    }),
  );

export const revokeInvitation = (id: string, invitationId: string) =>
  ok(deleteInvitation({ path: { id, invitationId }, throwOnError: true }));

/** Only the first answer had the link. A new one needs a new invitation, and the old one ends. */
export async function replaceInvitation(id: string, old: Invitation, key: string) {
  try {
    await revokeInvitation(id, old.id);
  } catch (error) {
    // An attempt whose second part failed has ended it already.
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  }
  const { email, role, approver } = old;
  return invite(id, { email, role, approver: role === 'member' && approver }, key);
}
