import type { NotificationKind } from '@rota/sdk';

export const strings = {
  product: 'Rota',
  title: 'Unsubscribe from these emails?',
  kinds: {
    approval_waiting: 'You will get no emails about approvals that wait for you in this account.',
    task_failed: 'You will get no emails about failed tasks in this account.',
    balance_low: 'You will get no emails about a low balance of this account.',
    webhook_disabled: 'You will get no emails about disabled webhooks of this account.',
  } satisfies Record<NotificationKind, string>,
  action: 'Unsubscribe',
  doneTitle: 'You are unsubscribed',
  doneHint: 'You can turn them on again in the settings, under Notifications.',
  missingTitle: 'This link is not complete',
  missingHint: 'Open the link in the email again.',
  toRota: 'Open Rota',
};
