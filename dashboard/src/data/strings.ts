export const strings = {
  name: 'Data',
  hint: (account: string) =>
    `How long ${account} keeps finished work, and how to export or erase its data.`,

  retention: 'Retention',
  retentionHint: 'Older data is deleted for good, within a day. Open tasks always stay.',
  kinds: {
    tasks: 'Tasks',
    steps: 'Steps of tasks',
    events: 'Events',
    audit: 'Audit trail',
  },
  days: 'days',
  forever: 'Forever',
  byDefault: 'Default',
  inEffect: (days: number | null) =>
    days === null ? undefined : `Currently deleted after ${days} ${days === 1 ? 'day' : 'days'}.`,
  empty: 'Leave empty to use the service default.',
  wrong: 'Enter a whole number of days, from 1 to 36500.',
  save: 'Save',
  saved: 'Retention saved',
  onlyManagers: 'Owners and admins can change the retention.',

  export: 'Export',
  exportHint:
    'A file with everything that the account owns, one line of JSON for each object. It does not contain secrets.',
  exportAction: 'Export all data',
  exported: 'The export is complete',
  cutOff: 'The export was cut off. Try again.',
  onlyOwners: 'Only owners can export or erase all data.',

  erase: 'Erase the account',
  eraseHint:
    'Everything stops at once: sessions, API keys, running tasks, schedules and plans. Then all texts are erased. This cannot be undone.',
  eraseAction: 'Erase the account',
  eraseTitle: 'Erase the account for good?',
  eraseWarning: 'Financial records stay, without any text. Export the data first if you need it.',
  typeName: (name: string) => `To confirm, type: ${name}`,
  nameLabel: 'Name of the account',
  nameWrong: 'This is not the name of the account.',
  signInAgain: 'For your safety, sign in again, then erase the account within 10 minutes.',
  toSignIn: 'Sign in again',

  ended: 'The account is closed',
  endedHint:
    'It can no longer be used. Its data is being erased. This takes a few minutes, or longer for a large account.',
  leave: 'Continue',
};
