import type { NotificationsResponse } from '@rota/sdk';
import { expect, test } from 'vitest';
import { bodyOf, formOf, isChanged, lacksUrl, toggled } from './form';

const stored: NotificationsResponse = {
  content: 'full',
  mail: { kinds: ['task_failed'], address: 'ada@example.test', transport: 'smtp' },
  chat: { kinds: [], url: null, service: null },
  digestMinutes: 15,
  deliveries: [],
};

test('a kind is added and removed in the order of the list', () => {
  expect(toggled(['task_failed'], 'approval_waiting')).toEqual(['approval_waiting', 'task_failed']);
  expect(toggled(['approval_waiting', 'task_failed'], 'approval_waiting')).toEqual(['task_failed']);
});

test('the stored settings are no change, also in another order', () => {
  expect(isChanged(formOf(stored), stored)).toBe(false);
  const both = { ...stored.mail, kinds: ['task_failed', 'approval_waiting'] as const };
  const other = { ...stored, mail: { ...both, kinds: [...both.kinds] } };
  expect(isChanged({ ...formOf(other), mail: ['approval_waiting', 'task_failed'] }, other)).toBe(
    false,
  );
  expect(isChanged({ ...formOf(stored), content: 'minimal' }, stored)).toBe(true);
});

test('a saved URL is not sent again, and a new one is', () => {
  const saved = {
    ...stored,
    chat: { ...stored.chat, url: 'https://hooks.test/…', service: 'teams' as const },
  };
  const form = { ...formOf(saved), chat: ['task_failed' as const] };
  expect(lacksUrl(form, saved)).toBe(false);
  expect(bodyOf(form).chat).toEqual({ kinds: ['task_failed'], service: 'teams' });
  expect(bodyOf({ ...form, url: ' https://x.test/1 ' }).chat.url).toBe('https://x.test/1');
  expect(bodyOf({ ...form, chat: [], removeUrl: true }).chat).toEqual({ kinds: [], url: null });
  expect(lacksUrl({ ...form, removeUrl: true }, saved)).toBe(true);
  expect(lacksUrl({ ...formOf(stored), chat: ['task_failed'] }, stored)).toBe(true);
});
