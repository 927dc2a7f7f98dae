import type { NotificationKind } from '@rota/sdk';

export const strings = {
  product: 'Rota',
  title: 'Unsubscribe from these emails?',
  kinds: {
    approval_waiting:
      'You will no longer get emails about approvals that wait for you in this account.',
    task_failed: 'You will no longer get emails about failed tasks in this account.',
    balance_low: 'You will no longer get emails about a low balance in this account.',
    webhook_disabled: 'You will no longer get emails about disabled webhooks in this account.',
  } satisfies Record<NotificationKind, string>,
  action: 'Unsubscribe',
  doneTitle: 'You are unsubscribed',
  doneHint: 'You can turn these emails on again in the settings, under Notifications.',
  missingTitle: 'This link is not complete',
  missingHint: 'Open the link in the email again.',
  toRota: 'Open Rota',
};
