import type { Role } from '@rota/sdk';
import { count, plural } from '../ui/format';

export const strings = {
  name: 'Members',
  hint: (company: string) => `The people who work in ${company}, and what each of them can do.`,
  action: 'Action',
  cancel: 'Cancel',
  save: 'Save',

  roles: { owner: 'Owner', admin: 'Admin', member: 'Member' } satisfies Record<Role, string>,
  roleDoes: {
    member: 'Works with tasks, schedules and agents.',
    admin: 'Also manages members, API keys, tool servers and the plan.',
    owner: 'Can do everything, and also manages other owners.',
  } satisfies Record<Role, string>,
  approver: 'Approver',
  canApprove: 'Can approve',
  canApproveDoes: 'Decides what agents may do, and calls tools directly.',
  alwaysApproves: 'Owners and admins can always approve.',
  yes: 'Yes',
  no: 'No',

  table: 'Members',
  member: 'Member',
  role: 'Role',
  since: 'Member since',
  you: 'You',
  noAddress: 'No verified address',
  seats: (members: number, seats: number | null) =>
    seats === null ? 'Unlimited seats' : `${count(members)} of ${plural(seats, 'seat')} used`,
  full: (seats: number) =>
    `All ${plural(seats, 'seat')} are in use. To invite someone, remove a member or choose a plan with more seats.`,
  over: (members: number, seats: number) =>
    `The company has ${plural(members, 'member')} and ${plural(seats, 'seat')}. All members keep their access, but no one can be added.`,
  toPlan: 'See the plan',
  shownOf: (shown: number, total: number) => `${count(shown)} of ${count(total)}`,
  more: 'Show more',
  manage: 'Manage',
  manageWho: (name: string) => `Manage ${name}`,
  lastOwner:
    'The last owner cannot leave or change role. Make another member an owner first, or erase the company.',

  change: 'Change role',
  changeTitle: (name: string) => `Change the role of ${name}`,
  changed: (name: string) => `Changes to ${name} saved`,

  remove: 'Remove',
  removeTitle: (name: string) => `Remove ${name}?`,
  removeAction: 'Remove member',
  removed: (name: string) => `${name} removed`,
  removeEnds: 'Within a second, for this company only:',
  leave: 'Leave the company',
  leaveTitle: (company: string) => `Leave ${company}?`,
  leaveAction: 'Leave company',
  left: (company: string) => `You have left ${company}`,
  leaveEnds: 'You need a new invitation to come back. Within a second, for this company only:',
  ends: [
    'Sessions lose access to the company.',
    'API keys that the member created are deleted.',
    'Schedules last saved by this member are paused.',
    'Open invitations that the member created are deleted.',
    'Approvals in pending reviews are withdrawn.',
  ],
  stays: 'Tasks are kept and continue. Decisions already made still count.',

  invite: 'Invite',
  inviteTitle: 'Invite a person',
  inviteAction: 'Create invitation',
  inviteHint:
    'You get a link to send to the person. It works once, for 7 days, and only for this address.',
  address: 'Email address',
  addressHint: 'The address that the person uses with their identity provider.',
  addressWrong: 'Enter an email address, such as grace@example.com.',

  invitations: 'Open invitations',
  noInvitations: 'No open invitations.',
  invitedBy: 'Invited by',
  expires: 'Expires',
  linkAgain: 'New link',
  revoke: 'Revoke',
  revokeTitle: 'Revoke this invitation?',
  revokeEffect: 'can no longer use the link.',
  revokeAction: 'Revoke invitation',
  revoked: 'Invitation revoked',
  linkTitle: 'Create a new link?',
  linkEffect: 'gets a new link, for 7 days from now. The old link stops working.',
  linkAction: 'Create new link',

  fresh: (email: string) => `Send this link to ${email}`,
  shownOnce: 'Shown once',
  copyLink: 'Copy link',
  freshHint:
    'Rota does not email this link. It works once, for 7 days, and only for a person who signs in with this address.',
  done: 'Done',
  linkGone:
    'The invitation exists, but the response with its link did not arrive. Choose “New link” below.',
};
