import type { ChatService, DeliveryState, MessageContent, NotificationKind } from '@rota/sdk';

export const strings = {
  name: 'Notifications',
  hint: (account: string) => `What you are told about ${account} when you do not look at it.`,
  kinds: {
    approval_waiting: 'Approvals that wait for you',
    task_failed: 'Failed tasks',
    balance_low: 'Low balance',
  } satisfies Record<NotificationKind, string>,
  kindsDo: {
    approval_waiting: 'A task waits for an approval that you can give.',
    task_failed: 'A task that you created has failed.',
    balance_low: 'The balance is below the amount of the alert, or used up.',
  } satisfies Record<NotificationKind, string>,
  mail: 'By mail',
  mailTo: (address: string) => `Mails go to ${address}.`,
  noAddress:
    'Your identity provider has not verified an email address. Verify it there and sign in again.',
  mailOff: 'This service sends no mail. Ask its operator to set up a mail server.',
  mailLog: 'This service has no mail server. It writes mails into its log.',
  chat: 'In a chat',
  chatHint:
    'With an incoming webhook of your chat service. Everyone in its channel can read along.',
  service: 'Chat service',
  services: {
    slack: 'Slack',
    mattermost: 'Mattermost',
    teams: 'Microsoft Teams',
  } satisfies Record<ChatService, string>,
  url: 'URL of the webhook',
  urlHint: 'It is a secret. It is stored encrypted and not shown again.',
  urlKept: (shown: string) => `Saved: ${shown}. Write another one to replace it.`,
  urlMissing: 'Write the URL of the webhook, such as https://hooks.slack.com/services/…',
  removeUrl: 'Remove the webhook',
  content: 'Content of messages',
  contents: {
    full: 'Full',
    minimal: 'Minimal',
  } satisfies Record<MessageContent, string>,
  contentsDo: {
    full: 'The agent, the task and what it wants to do.',
    minimal: 'Only that something waits, and a link.',
  } satisfies Record<MessageContent, string>,
  digest: (minutes: number) =>
    `The first message is sent at once. What happens in the ${minutes} minutes after it waits for one message about all of it.`,
  save: 'Save',
  discard: 'Discard',
  saved: 'The notifications are saved',
  test: 'Send a test',
  testSent: 'The test message is sent',
  testFailed: 'The test message was not delivered',
  sent: 'Messages',
  kind: 'About',
  channel: 'Channel',
  channels: { mail: 'Mail', chat: 'Chat' },
  state: 'State',
  states: {
    idle: 'Nothing waits',
    waiting: 'Waits',
    retrying: 'Tries again',
    failed: 'Given up',
  } satisfies Record<DeliveryState, string>,
  lastSent: 'Last sent',
  never: 'never',
};
