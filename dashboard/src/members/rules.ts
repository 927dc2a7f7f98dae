/** Who can do what to whom. The API decides; these only hide what it would refuse. */
import type { Member, Role } from '@rota/sdk';

/** Owners and admins manage members. */
export const canManage = (role: Role): boolean => role !== 'member';

/** The roles that somebody can give, the smallest first. Only owners make owners. */
export const rolesToGive = (own: Role): Role[] =>
  own === 'owner' ? ['member', 'admin', 'owner'] : own === 'admin' ? ['member', 'admin'] : [];

/** Whether a company without this member would have no owner. Unknown until all are loaded. */
export const isLastOwner = (member: Member, members: Member[], isComplete: boolean): boolean =>
  isComplete &&
  member.role === 'owner' &&
  !members.some((other) => other.role === 'owner' && other.userId !== member.userId);

export interface Possible {
  change: boolean;
  remove: boolean;
  leave: boolean;
}

/** What can be done with one member. */
export function possible(
  member: Member,
  by: { userId: string; role: Role },
  lastOwner: boolean,
): Possible {
  const isSelf = member.userId === by.userId;
  const manages = canManage(by.role) && (by.role === 'owner' || member.role !== 'owner');
  return {
    change: manages && !lastOwner,
    remove: manages && !isSelf && !lastOwner,
    leave: isSelf && !lastOwner,
  };
}

/** How a member is called: by name, by address, or by ID. */
export const nameOf = ({ name, email, userId }: Member): string => name ?? email ?? userId;

/** What a changed form sends. Owners and admins can always approve, so it is not sent for them. */
export const changeOf = (role: Role, approver: boolean) =>
  role === 'member' ? { role, approver } : { role };

/** Whether a seat is free. Null seats: any number. */
export const isFull = ({ seats, members }: { seats: number | null; members: number }): boolean =>
  seats !== null && members >= seats;
