import { expect, test } from 'vitest';
import { ownPath } from './oidc';

test.each([
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'data:text/html,x',
  'https://evil.example/',
  '//evil.example',
  '///evil.example',
  '/\\evil.example',
  '/\t/evil.example',
  '/\n\\evil.example',
  '\\\\evil.example',
  ' //evil.example',
  '/.//evil.example',
  '/..//evil.example',
  '/tasks/..//evil.example',
  '/%2e//evil.example',
  '/.\\\\evil.example',
  '//user@evil.example',
  '//',
  '/signin?next=/signin',
  'evil.example',
  '',
])('%j leads to the first page', (next) => {
  expect(ownPath(next)).toBe('/');
});

test.each([
  '/acct_1/tasks?status=FAILED&q=a%20b#x',
  '/acct_1/new?text=javascript:alert(1)',
  '/acct_1/tasks?q=//evil.example',
])('%j is a path of our own', (next) => {
  expect(ownPath(next)).toBe(next);
});
