import type { AuditActor } from '@rota/sdk';
import { count, plural } from '../ui/format';

export const strings = {
  name: 'Audit trail',
  hint: 'Who did what, in a chain of entries that shows whether one was changed or removed.',

  what: 'What',
  anything: 'Everything',
  who: 'Who',
  anyActor: 'Everyone',
  actors: {
    user: 'People',
    key: 'API keys',
    agent: 'Agents',
    operator: 'Operators',
    service: 'Rota itself',
  } satisfies Record<AuditActor, string>,
  person: 'Person',
  anyPerson: 'Anyone',
  resource: 'About',
  resourceHint: 'ID, such as task_…',
  from: 'From',
  to: 'To',
  clear: 'Clear filters',

  entries: 'Entries',
  time: 'Time',
  action: 'Action',
  about: 'About',
  details: 'Details',
  none: 'No entries yet.',
  noMatch: 'No entry matches.',
  shownOf: (shown: number, total: number) =>
    `${count(shown)} of ${plural(total, 'entry', 'entries')}`,
  more: 'Show more',

  agent: 'Agent',
  operator: 'Operator',
  service: 'Rota',
  withKey: 'with an API key',
  account: 'The account',
  unknownPerson: 'Unknown user',

  entry: (sequence: number) => `Entry ${count(sequence)}`,
  fields: {
    at: 'Time',
    action: 'Action',
    userId: 'User',
    via: 'With',
    resource: 'About',
    address: 'Address',
    requestId: 'Request',
    actorName: 'Command',
    hash: 'Hash',
    details: 'Details',
  },
  erased: 'The address, the request, the command and the details were erased.',
  sameResource: 'All entries about this',
  samePerson: 'All entries by this person',
  close: 'Close',

  export: 'Export',
  exported: 'The whole trail is saved',
  head: 'Signed head',
  headHint:
    'It covers every entry so far. Store it outside Rota. Later, it shows whether the trail was changed.',
  newest: (sequence: number) => `Up to entry ${count(sequence)}`,
  copyHead: 'Copy head',
};

/** The choices of the filter: actions, or the part before the dot for all of a family. */
export const choices: { label: string; actions: string }[] = [
  { label: 'Tasks', actions: 'task' },
  { label: 'Decisions', actions: 'review' },
  { label: 'Steps of agents', actions: 'step,run' },
  { label: 'Tool servers and tools', actions: 'mcp,tool' },
  { label: 'Schedules', actions: 'schedule' },
  { label: 'Money', actions: 'credits' },
  { label: 'Plan', actions: 'subscription,payments' },
  { label: 'API keys', actions: 'key' },
  { label: 'Sessions', actions: 'session' },
  { label: 'Members', actions: 'member,invitation' },
  { label: 'Policies and rules', actions: 'policy,rule' },
  { label: 'Account', actions: 'account,company,audit' },
];

/** What an action is about, by the part before its dot. */
export const families: Record<string, string> = {
  account: 'Account',
  audit: 'Audit trail',
  company: 'Company',
  credits: 'Money',
  invitation: 'Invitation',
  key: 'API key',
  mcp: 'Tool server',
  member: 'Member',
  payments: 'Payments',
  policy: 'Policy',
  review: 'Decision',
  rule: 'Standing rule',
  run: 'Run',
  schedule: 'Schedule',
  session: 'Session',
  step: 'Step',
  subscription: 'Plan',
  task: 'Task',
  tool: 'Tool',
};
