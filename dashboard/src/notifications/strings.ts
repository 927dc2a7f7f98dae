import type { ChatService, DeliveryState, MessageContent, NotificationKind } from '@rota/sdk';

export const strings = {
  name: 'Notifications',
  hint: (account: string) => `What you are notified about in ${account}.`,
  kinds: {
    approval_waiting: 'Approvals that wait for you',
    task_failed: 'Failed tasks',
    balance_low: 'Low balance',
    webhook_disabled: 'Disabled webhooks',
  } satisfies Record<NotificationKind, string>,
  kindsDo: {
    approval_waiting: 'A task waits for an approval that you can give.',
    task_failed: 'A task that you created has failed.',
    balance_low: 'The balance is below the amount of the alert, or used up.',
    webhook_disabled: 'A webhook was disabled, for example because deliveries failed.',
  } satisfies Record<NotificationKind, string>,
  what: 'Notify me about',
  mail: 'By email',
  mailTo: (address: string) => `Emails go to ${address}.`,
  noAddress:
    'Your identity provider has not verified an email address. Verify it there and sign in again.',
  mailOff: 'This service sends no email. Ask its operator to set up a mail server.',
  mailLog: 'This service has no mail server. It writes emails to its log.',
  chat: 'In a chat',
  chatHint:
    'With an incoming webhook of your chat service. Everyone in the channel can read the messages.',
  service: 'Chat service',
  services: {
    slack: 'Slack',
    mattermost: 'Mattermost',
    teams: 'Microsoft Teams',
  } satisfies Record<ChatService, string>,
  url: 'URL of the webhook',
  urlHint: 'It is a secret. It is stored encrypted and not shown again.',
  urlKept: (shown: string) => `Saved: ${shown}. Enter a new URL to replace it.`,
  urlMissing: 'Enter the URL of the webhook, such as https://hooks.slack.com/services/…',
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
    `The first message is sent immediately. Everything in the following ${minutes} minutes is combined into one message.`,
  save: 'Save',
  discard: 'Discard',
  saved: 'Notifications saved',
  test: 'Send a test',
  testSent: 'Test message sent',
  testFailed: 'The test message was not delivered',
  sent: 'Delivery status',
  kind: 'About',
  channel: 'Channel',
  channels: { mail: 'Email', chat: 'Chat' },
  state: 'State',
  states: {
    idle: 'Nothing to send',
    waiting: 'Waiting',
    retrying: 'Retrying',
    failed: 'Failed',
  } satisfies Record<DeliveryState, string>,
  lastSent: 'Last sent',
  never: 'never',
};
