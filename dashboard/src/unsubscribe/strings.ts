import type { NotificationKind } from '@rota/sdk';

export const strings = {
  product: 'Rota',
  title: 'Turn off these mails?',
  kinds: {
    approval_waiting: 'You will get no mails about approvals that wait for you in this account.',
    task_failed: 'You will get no mails about failed tasks in this account.',
    balance_low: 'You will get no mails about a low balance of this account.',
  } satisfies Record<NotificationKind, string>,
  action: 'Turn off',
  doneTitle: 'These mails are off',
  doneHint: 'You can turn them on again in the settings, under Notifications.',
  missingTitle: 'This link is not complete',
  missingHint: 'Open the link of the mail again.',
  toRota: 'Open Rota',
};
