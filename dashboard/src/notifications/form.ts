import type {
  ChatService,
  MessageContent,
  NotificationKind,
  NotificationsResponse,
  PutNotifications,
} from '@rota/sdk';

export const KINDS: NotificationKind[] = [
  'approval_waiting',
  'task_failed',
  'balance_low',
  'webhook_disabled',
];

export interface Form {
  content: MessageContent;
  mail: NotificationKind[];
  chat: NotificationKind[];
  service: ChatService;
  /** A new URL. Empty: as it is. */
  url: string;
  removeUrl: boolean;
}

export const formOf = (stored: NotificationsResponse): Form => ({
  content: stored.content,
  mail: stored.mail.kinds,
  chat: stored.chat.kinds,
  service: stored.chat.service ?? 'slack',
  url: '',
  removeUrl: false,
});

/** With or without a kind, in the order of the list. */
export const toggled = (kinds: NotificationKind[], kind: NotificationKind): NotificationKind[] =>
  KINDS.filter((each) => (each === kind ? !kinds.includes(each) : kinds.includes(each)));

/** Whether chat messages have nowhere to go. */
export const lacksUrl = (form: Form, stored: NotificationsResponse): boolean =>
  form.chat.length > 0 && !form.url.trim() && (form.removeUrl || stored.chat.url === null);

export function bodyOf(form: Form): PutNotifications {
  const { content, mail, chat: kinds, service } = form;
  const url = form.url.trim();
  const chat = url
    ? { kinds, service, url }
    : form.removeUrl
      ? { kinds, url: null }
      : { kinds, service };
  return { content, mail: { kinds: mail }, chat };
}

export function isChanged(form: Form, stored: NotificationsResponse): boolean {
  const now = formOf(stored);
  const order = (kinds: NotificationKind[]) => KINDS.filter((each) => kinds.includes(each)).join();
  return (
    form.url !== '' ||
    form.removeUrl ||
    form.content !== now.content ||
    form.service !== now.service ||
    order(form.mail) !== order(now.mail) ||
    order(form.chat) !== order(now.chat)
  );
}
