import type { Shaping } from '@rota/sdk';
import { createContext, type RefObject, useContext } from 'react';
import type { ReviewData } from './data';
import type { ReviewState } from './useReview';

export interface ReviewView {
  state: ReviewState;
  /** What is on screen. */
  data: ReviewData;
  /** The review has the page to itself. In the inbox it stands beside the list. */
  page: boolean;
  /** Goes around everything that is decided. */
  content: RefObject<HTMLDivElement | null>;
  /** Whether the person is an approver. All others can only read. */
  canDecide: boolean;
  /** Why this cannot be approved now. */
  blocked: string | null;
  /** How the person shaped what a second person has to approve. */
  shaped: Shaping[];
  unread: boolean;
  /** Shows the first part that has not been on screen. */
  readOn: () => void;
  busy: boolean;
  onApprove: () => void;
  onReject: (then: 'stop' | 'continue') => void;
}

export const ReviewContext = createContext<ReviewView | null>(null);

export function useReviewView(): ReviewView {
  const view = useContext(ReviewContext);
  if (!view) throw new Error('This part belongs inside a review.');
  return view;
}
