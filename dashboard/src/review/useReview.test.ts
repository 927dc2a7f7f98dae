import type { Review, ReviewItem } from '@rota/sdk';
import { expect, test } from 'vitest';
import type { ReviewData } from './data';
import { fingerprint } from './data';
import { draftOf, keepDraft } from './drafts';
import { withEdit } from './edits';
import { fieldsOf, flat } from './schema';
import { approvalOf, type Call, draftFor, returned } from './useReview';

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

test('edits wait while the person looks at something else', () => {
  const data = (text: string, more: object = {}) =>
    ({
      review: { ...review({ ...item('a'), arguments: { text } }), ...more },
    }) as unknown as ReviewData;
  const [field] = fieldsOf(null, { text: 'Hello' });
  if (!field) throw new Error('no field');
  const first = data('Hello');
  const draft = draftFor(null, first);
  if (!draft) throw new Error('no draft');
  const mine = { ...draft, edits: { a: withEdit({}, field, { text: 'Bye' }) } };
  keepDraft('task', mine);
  expect(returned(draftOf('task'), first)).toBe(mine);
  // Another proposal waits now: the edit is shown against it.
  const next = returned(draftOf('task'), data('Good day', { number: 3, digest: 'cd' }));
  expect(next?.edits).toEqual({ a: { [field.id]: { text: 'Bye' } } });
  expect(next?.replaced?.edits).toBe('kept');
  expect(returned(draftOf('task'), data('Hello', { state: 'approved' }))).toBeNull();

  const leave = () => !dispatchEvent(new Event('beforeunload', { cancelable: true }));
  expect(leave()).toBe(true);
  keepDraft('task', draft);
  expect(draftOf('task')).toBeNull();
  expect(leave()).toBe(false);
});
