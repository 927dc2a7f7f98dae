import { afterEach, expect, test, vi } from 'vitest';
import { forgetKept, keep, keepOnlyFor, kept } from './kept';

afterEach(() => {
  vi.unstubAllGlobals();
  forgetKept();
});

/** Whether the browser asks before the page goes. */
const asks = () => !dispatchEvent(new Event('beforeunload', { cancelable: true }));

test('what was typed is kept in the tab until it is sent or the person signs out', () => {
  keep('new-task.acct_1', { text: 'Check the invoices.' });
  expect(kept('new-task.acct_1')).toEqual({ text: 'Check the invoices.' });
  expect(kept('new-task.acct_2')).toBeNull();
  expect(asks()).toBe(false);
  keep('new-task.acct_1', null);
  expect(kept('new-task.acct_1')).toBeNull();
  keep('new-task.acct_1', { text: 'Check them again.' });
  sessionStorage.setItem('rota.paying', 'something else');
  forgetKept();
  expect(kept('new-task.acct_1')).toBeNull();
  expect(sessionStorage.getItem('rota.paying')).toBe('something else');
});

test('what one person typed is not kept for another who signs in', () => {
  keepOnlyFor('user_1');
  keep('review.task_1', 'My words.');
  keepOnlyFor('user_1');
  expect(kept('review.task_1')).toBe('My words.');
  keepOnlyFor('user_2');
  expect(kept('review.task_1')).toBeNull();
  keep('review.task_1', 'Other words.');
  keepOnlyFor('user_2');
  expect(kept('review.task_1')).toBe('Other words.');
});

test('what has no room in the storage is kept until the page goes, and the browser asks', () => {
  const full = () => {
    throw new DOMException('full', 'QuotaExceededError');
  };
  vi.stubGlobal('sessionStorage', { getItem: () => null, removeItem: () => {}, setItem: full });
  keep('many-tasks.acct_1', 'long');
  expect(kept('many-tasks.acct_1')).toBe('long');
  expect(asks()).toBe(true);
  keep('many-tasks.acct_1', null);
  expect(kept('many-tasks.acct_1')).toBeNull();
  expect(asks()).toBe(false);
});
