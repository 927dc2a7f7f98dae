import { APIError } from '@rota/sdk';
import { beforeEach, expect, test } from 'vitest';
import { unanswered } from '../api/client';
import { failureOf } from './failure';
import { forgetToken, keepToken, keptToken } from './token';

beforeEach(() => sessionStorage.clear());

test('the token of the link stays in this tab until it is used', () => {
  expect(keepToken('#invite_1_abc')).toBe(true);
  expect(keptToken()).toBe('invite_1_abc');
  // The page is opened again after the sign-in, without a token in its address.
  expect(keepToken('')).toBe(false);
  expect(keptToken()).toBe('invite_1_abc');
  // Another link that is opened in the tab takes its place.
  expect(keepToken('invite_2_def')).toBe(true);
  expect(keptToken()).toBe('invite_2_def');
  forgetToken();
  expect(keptToken()).toBeNull();
});

test('each refusal has a reason that the page can explain', () => {
  const refused = (status: number) => new APIError('No.', { status });
  expect(failureOf(refused(404))).toBe('gone');
  expect(failureOf(refused(403))).toBe('address');
  expect(failureOf(refused(409))).toBe('seats');
  expect(failureOf(refused(429))).toBe('other');
  expect(failureOf(unanswered('POST', true))).toBe('other');
  expect(failureOf(new Error('No.'))).toBe('other');
});
