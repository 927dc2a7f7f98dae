import type { Review, ReviewItem } from '@rota/sdk';
import { expect, test } from 'vitest';
import type { ReviewData } from './data';
import { fingerprint } from './data';
import { withEdit } from './edits';
import { fieldsOf, flat } from './schema';
import { approvalOf, type Call, draftFor } from './useReview';

const item = (id: string) =>
  ({ id, tool: 'reply', arguments: { text: 'Hello' }, decision: null }) as unknown as ReviewItem;
const review = (...items: ReviewItem[]) =>
  ({ number: 2, digest: 'ab', state: 'pending', gate: 'tool', items }) as unknown as Review;
const call = (id: string, change?: string): Call => {
  const fields = fieldsOf(null, { text: 'Hello' });
  const [field] = flat(fields);
  const edits = field && change ? withEdit({}, field, { text: change }) : {};
  return { item: item(id), fields, edits, chosen: true };
};
const shown = { number: 2, digest: 'ab' };

test('every decision names the review that was on screen', () => {
  expect(approvalOf(review(item('a')), [call('a')])).toEqual({ review: shown });
});

test('edits are sent with their call', () => {
  expect(approvalOf(review(item('a')), [call('a', 'Bye')])).toEqual({
    review: shown,
    decisions: [{ id: 'a', arguments: { text: 'Bye' } }],
  });
});

test('of several calls, the chosen ones are named', () => {
  const calls = [call('a', 'Bye'), { ...call('b'), chosen: false }, call('c')];
  expect(approvalOf(review(item('a'), item('b'), item('c')), calls)).toEqual({
    review: shown,
    decisions: [{ id: 'a', arguments: { text: 'Bye' } }, { id: 'c' }],
  });
});

test('another digest, state or decision of an item is another review', () => {
  const before = review(item('a'));
  for (const change of [
    { ...before, digest: 'cd' },
    { ...before, state: 'approved' as const },
    review({ ...item('a'), decision: 'approved' }),
  ]) {
    expect(fingerprint(change)).not.toBe(fingerprint(before));
  }
  expect(fingerprint({ ...before, history: [] })).toBe(fingerprint(before));
});

test('a review that ended makes way for the next one, a review that waits does not', () => {
  const data = (number: number, state: string) =>
    ({ review: { ...review(item('a')), number, state } }) as unknown as ReviewData;
  const shown = (first: ReviewData, next: ReviewData) =>
    draftFor(draftFor(null, first), next)?.shown;
  const [approved, waits, next] = [data(1, 'approved'), data(1, 'pending'), data(2, 'pending')];
  expect(shown(approved, next)).toBe(next);
  expect(shown(waits, next)).toBe(waits);
  expect(shown(waits, approved)).toBe(waits);
});
