/** Second person: nobody approves what they shaped, where the account or the review says so. */
import type { Review, ReviewItem, Shaping } from '@rota/sdk';
import { isQuestion, pendingItems } from './data';

/**
 * How the person shaped what they would approve. Empty: they can approve it. An answer to a question
 * approves nothing. In a part of the calls, only the tools of these calls count.
 */
export function shapedHow(review: Review, chosen: ReviewItem[], me: string | undefined): Shaping[] {
  const calls = chosen.filter((item) => !isQuestion(item));
  if (!review.secondPerson || (review.items.length > 0 && !calls.length)) return [];
  const all = pendingItems(review).filter((item) => !isQuestion(item));
  if (calls.length === all.length) return review.shaped;
  return review.shaped.filter(
    (how) => how !== 'acceptedTool' || calls.some((item) => item.acceptedBy?.userId === me),
  );
}
