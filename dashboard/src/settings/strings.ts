import type { Role, Scope } from '@rota/sdk';

export const strings = {
  settings: 'Settings',
  you: 'You',
  account: 'Account',
  cancel: 'Cancel',
  copy: 'Copy',
  never: 'never',
  unknown: 'unknown',
  action: 'Action',
  webhooks: 'Webhooks',

  profile: {
    name: 'Profile',
    hint: 'Your name and email come from the provider that you sign in with.',
    you: 'You',
    fullName: 'Name',
    email: 'Email',
    none: 'not given',
    userId: 'User ID',
    since: 'Joined',
    account: 'This account',
    accountName: 'Name',
    kind: 'Kind',
    kinds: { personal: 'Personal', company: 'Company' },
    role: 'Your role',
    roles: { owner: 'Owner', admin: 'Admin', member: 'Member' } satisfies Record<Role, string>,
    tier: 'Tier',
    accountId: 'Account ID',
    accounts: 'Your accounts',
    shown: 'Current',
    open: 'Open',
    copyUser: 'Copy user ID',
    copyAccount: 'Copy account ID',
  },

  appearance: {
    name: 'Appearance',
    hint: 'For this browser only.',
    theme: 'Theme',
    system: 'System',
    systemHint: 'Follows the setting of your device.',
    light: 'Light',
    lightHint: 'Dark text on a light background.',
    dark: 'Dark',
    darkHint: 'Light text on a dark background.',
  },

  sessions: {
    name: 'Sessions',
    hint: 'Where you are signed in, in all accounts. Sign out any session that you do not recognize.',
    active: 'Active sessions',
    device: 'Device',
    unknownDevice: 'Unknown device',
    address: 'Address',
    signedIn: 'Signed in',
    lastSeen: 'Last seen',
    thisDevice: 'This device',
    signOut: 'Sign out',
    endOthers: 'Sign out all others',
    endTitle: 'Sign out this session?',
    endEffect: (device: string) => `${device} is signed out within a second.`,
    endOthersTitle: (count: string) => `Sign out ${count}?`,
    endOthersEffect:
      'Every other device and program is signed out within a second. This one stays.',
    ended: 'Signed out',
    othersEnded: 'All others are signed out',
  },

  keys: {
    name: 'API keys',
    hint: (account: string) =>
      `A key acts for ${account}. Give each program its own key, with only the scopes that it needs.`,
    create: 'Create key',
    createTitle: 'Create API key',
    active: 'Active keys',
    keyName: 'Name',
    namePlaceholder: 'What will use it?',
    nameMissing: 'Enter a name of 1 to 100 characters.',
    scopes: 'Scopes',
    scopesMissing: 'Choose at least one.',
    thisKeyCan: 'This key can',
    created: 'Created',
    by: (name: string) => `by ${name}`,
    lastUsed: 'Last used',
    expires: 'Expires',
    expired: 'expired',
    endsOn: (day: string) => `It stops working on ${day}.`,
    endsNever: 'It works until it is revoked.',
    expiry: { 30: 'In 30 days', 90: 'In 90 days', 365: 'In a year', 0: 'Never' },
    approveWarning:
      'A key that may approve can let agents act without a person. Leave this off unless a person stands behind each decision.',
    ready: 'is ready',
    shownOnce: 'Shown once',
    copyNow:
      'Copy it now and keep it in a password manager. Rota stores only a fingerprint and cannot show the key again.',
    stored: 'I have stored it',
    secretGone:
      'The key exists, but the response with its secret did not arrive. Revoke the key and create another one.',
    leaveTitle: 'Leave without the key?',
    leaveEffect:
      'The key is shown only here and only now. If you have not stored it, stay and copy it.',
    stay: 'Stay',
    leave: 'I have stored it, leave',
    revoke: 'Revoke',
    revokeTitle: 'Revoke this key?',
    revokeEffect:
      'stops working within a second, in every program that uses it. This cannot be undone.',
    revokeAction: 'Revoke key',
    revoked: 'Key revoked',
    none: 'Create a key for a program that creates tasks, reads results or watches costs.',
    limit: 'All keys and sessions of an account share one rate limit.',
  },

  mcp: {
    name: 'Connect an assistant (MCP)',
    hint: 'Assistants and other MCP clients can create tasks and wait for them. They must not approve, so use a key without the scope tasks:approve.',
    copyUrl: 'Copy URL',
    placeholder: 'YOUR_API_KEY',
    configuration: 'Configuration of an MCP client',
    copyConfiguration: 'Copy configuration',
    command:
      'For programs that start MCP servers as a command, run “rota login” once and use the command “rota mcp”.',
  },
};

/** What each scope lets a key do. `GET` requests need the first one of a group. */
export const scopeGroups: {
  name: string;
  scopes: { scope: Scope; label: string; does: string }[];
}[] = [
  {
    name: 'Tasks',
    scopes: [
      { scope: 'tasks:read', label: 'Read tasks', does: 'Tasks, their results, and events.' },
      {
        scope: 'tasks:write',
        label: 'Create and cancel tasks',
        does: 'Starts work, which costs money.',
      },
      {
        scope: 'tasks:approve',
        label: 'Approve and reject',
        does: 'Decides in place of a person.',
      },
    ],
  },
  {
    name: 'Agents',
    scopes: [
      { scope: 'agents:read', label: 'See agents', does: 'The catalog, and who can do what.' },
    ],
  },
  {
    name: 'Tool servers',
    scopes: [
      { scope: 'mcp:read', label: 'See tool servers', does: 'Servers, their tools and health.' },
      {
        scope: 'mcp:write',
        label: 'Connect tool servers',
        does: 'Connects and removes servers, and accepts changed tools in place of a person.',
      },
      {
        scope: 'mcp:invoke',
        label: 'Call tools directly',
        does: 'Runs a tool without an agent or a review.',
      },
    ],
  },
  {
    name: 'Money',
    scopes: [
      {
        scope: 'billing:read',
        label: 'Read balance and transactions',
        does: 'Credits, usage and the plan.',
      },
      {
        scope: 'billing:write',
        label: 'Top up, change plan',
        does: 'Starts payments and changes settings.',
      },
    ],
  },
  {
    name: 'Webhooks',
    scopes: [
      {
        scope: 'webhooks:read',
        label: 'See webhooks',
        does: 'Endpoints and their deliveries.',
      },
      {
        scope: 'webhooks:write',
        label: 'Manage webhooks',
        does: 'Can send the events that the key can read to any URL.',
      },
    ],
  },
  {
    name: 'Audit',
    scopes: [
      {
        scope: 'audit:read',
        label: 'Read the audit trail',
        does: 'What everyone in the account did.',
      },
    ],
  },
];

/** What most programs need. A decision is for people, so it must be chosen. */
export const firstScopes: Scope[] = ['tasks:read', 'tasks:write', 'agents:read'];
