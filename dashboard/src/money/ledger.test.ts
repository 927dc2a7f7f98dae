import { expect, test } from 'vitest';
import { withoutStop } from './ledger';

test.each([
  ['Reply to ticket T-4825.', 'Reply to ticket T-4825'],
  ['Reply to ticket T-4825', 'Reply to ticket T-4825'],
  ['And so on...', 'And so on...'],
  ['.', '.'],
])('%s before a dot is %s', (name, text) => expect(withoutStop(name)).toBe(text));
