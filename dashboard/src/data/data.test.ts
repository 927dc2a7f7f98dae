import { expect, test } from 'vitest';
import { formOf, isComplete, retentionOf } from './form';

const none = { tasks: null, steps: null, events: null, audit: null };

test('what is stored is sent back as it is', () => {
  const stored = { ...none, tasks: 365, audit: 30 };
  expect(retentionOf(formOf(stored))).toEqual(stored);
});

test('only whole numbers of days are sent', () => {
  for (const text of ['0', '-1', '1.5', 'many', '36501', '1e3']) {
    expect(retentionOf({ ...formOf(none), steps: text })).toBeNull();
  }
  expect(retentionOf({ ...formOf(none), steps: ' 90 ' })).toEqual({ ...none, steps: 90 });
});

test('an export without its last line is not complete', () => {
  expect(isComplete('{"manifest":{}}\n{"end":{}}\n')).toBe(true);
  expect(isComplete('{"manifest":{}}\n{"type":"task"}\n')).toBe(false);
  expect(isComplete('{"manifest":{}}\n{"end":{')).toBe(false);
});
