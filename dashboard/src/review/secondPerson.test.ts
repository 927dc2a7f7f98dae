import type { Review, ReviewItem } from '@rota/sdk';
import { describe, expect, it } from 'vitest';
import { shapedHow } from './secondPerson';

const call = (acceptedBy: string) =>
  ({
    tool: 'send',
    server: 'mail',
    decision: null,
    acceptedBy: { userId: acceptedBy },
  }) as ReviewItem;
const question = { tool: 'ask_person', server: null, decision: null } as ReviewItem;
const review = (items: ReviewItem[], shaped: Review['shaped'], secondPerson = true) =>
  ({ items, shaped, secondPerson }) as Review;

describe('who can approve if a second person has to', () => {
  it('is everybody who has not shaped it', () => {
    const items = [call('ada')];
    expect(shapedHow(review(items, []), items, 'me')).toEqual([]);
    expect(shapedHow(review(items, ['created']), items, 'me')).toEqual(['created']);
    expect(shapedHow(review([], ['created']), [], 'me')).toEqual(['created']);
  });

  it('is everybody if no second person has to', () => {
    const items = [call('me')];
    expect(shapedHow(review(items, [], false), items, 'me')).toEqual([]);
  });

  it('is also who accepted the tool of another call, and who answers', () => {
    const items = [call('me'), call('ada'), question];
    const shaped: Review['shaped'] = ['acceptedTool'];
    expect(shapedHow(review(items, shaped), [call('ada')], 'me')).toEqual([]);
    expect(shapedHow(review(items, shaped), items, 'me')).toEqual(['acceptedTool']);
    expect(shapedHow(review(items, ['created']), [question], 'me')).toEqual([]);
  });
});
