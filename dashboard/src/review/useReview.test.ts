import type { Review, ReviewItem, ToolServer } from '@rota/sdk';
import { expect, test } from 'vitest';
import { ExactNumber } from '../api/exact';
import type { ReviewData } from './data';
import { fingerprint, toolProblem } from './data';
import { draftOf, keepDraft } from './drafts';
import { withEdit } from './edits';
import { fieldsOf, flat } from './schema';
import { approvalOf, type Call, draftFor, returned, withoutEdits } from './useReview';

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

test('a review that ended or was approved makes way for the next one, one that waits does not', () => {
  const data = (number: number, state: string) =>
    ({ review: { ...review(item('a')), number, state } }) as unknown as ReviewData;
  const shown = (first: ReviewData, next: ReviewData) =>
    draftFor(draftFor(null, first), next)?.shown;
  const [approved, waits, next] = [data(1, 'approved'), data(1, 'pending'), data(2, 'pending')];
  expect(shown(approved, next)).toBe(next);
  expect(shown(waits, next)).toBe(waits);
  // Approved by somebody else: nothing is left to decide in it. A rejected one can come back.
  expect(shown(waits, approved)).toBe(approved);
  expect(shown(waits, data(1, 'rejected'))).toBe(waits);
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
  expect(returned(draftOf('task'), first)).toEqual(mine);
  // Another proposal waits now: the edit is shown against it.
  const next = returned(draftOf('task'), data('Good day', { number: 3, digest: 'cd' }));
  expect(next?.edits).toEqual({ a: { [field.id]: { text: 'Bye' } } });
  expect(next?.replaced?.edits).toBe('kept');
  expect(returned(draftOf('task'), data('Hello', { state: 'approved' }))).toBeNull();

  keepDraft('task', draft);
  expect(draftOf('task')).toBeNull();
});

test('edits outlive the page, with every digit and with what is left out', () => {
  const exact = new ExactNumber('12345678901234567890');
  const data = { review: review({ ...item('a'), arguments: { text: exact } } as never) };
  const draft = draftFor(null, data as unknown as ReviewData);
  if (!draft) throw new Error('no draft');
  const edits = { a: { 'a text': { value: undefined }, more: { value: exact } } };
  keepDraft('task', { ...draft, edits });
  expect(draftOf('task')).toStrictEqual({ ...draft, edits });
  keepDraft('task', null);
});

test('edits are discarded without the answers to questions', () => {
  const question = { ...item('q'), tool: 'ask_person', server: null } as unknown as ReviewItem;
  const data = { review: review(item('a'), question) } as unknown as ReviewData;
  const draft = draftFor(null, data);
  if (!draft) throw new Error('no draft');
  const answer = { answer: { text: 'Yes.' } };
  const edits = { a: { text: { text: 'Bye' } }, q: answer };
  expect(withoutEdits({ ...draft, edits }).edits).toEqual({ q: answer });
});

test('a review of a server that is gone is told from one of a changed tool', () => {
  const servers = [{ id: 'mcp_1' }] as ToolServer[];
  const call = (serverId: string | null, definitionAccepted: boolean | null) =>
    review({ ...item('a'), serverId, definitionAccepted } as unknown as ReviewItem);
  expect(toolProblem(call('mcp_1', true), servers)).toBeNull();
  expect(toolProblem(call('mcp_1', false), servers)).toBe('changed');
  expect(toolProblem(call('mcp_2', false), servers)).toBe('disconnected');
  expect(toolProblem(call('mcp_2', null), servers)).toBe('disconnected');
  expect(toolProblem(call(null, null), servers)).toBeNull();
  // Until the servers are known.
  expect(toolProblem(call('mcp_2', false), undefined)).toBe('changed');
});
