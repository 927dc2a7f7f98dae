import type { Role } from '@rota/sdk';

export const strings = {
  product: 'Rota',
  title: (company: string) => `Join ${company}`,
  lead: (inviter: string) => `${inviter} invites you to work together in Rota.`,
  someone: 'A member of the company',
  company: 'Company',
  role: 'Your role',
  roles: { owner: 'Owner', admin: 'Admin', member: 'Member' } satisfies Record<Role, string>,
  approves: 'can approve',
  inviter: 'Invited by',
  unknown: 'unknown',
  expires: 'Expires',
  signedInAs: 'Signed in as',
  accept: 'Accept invitation',
  otherAccount: 'Sign in with another address',
  toRota: 'Go to Rota',

  memberTitle: (company: string) => `You are already a member of ${company}`,
  memberHint: 'You do not need this invitation.',
  open: (company: string) => `Open ${company}`,

  goneTitle: 'This invitation is no longer valid',
  goneHint:
    'It has expired, was revoked or has already been used. Ask an owner or admin of the company for a new link.',
  missingTitle: 'The link is not complete',
  missingHint: 'Open the complete invitation link, or ask for a new one.',
  addressTitle: 'This invitation is for another address',
  seatsTitle: 'The company has no free seat',
  seatsHint:
    'Ask an owner or admin to free a seat or to add seats. Then accept again: the invitation stays open until it expires.',
};
