/** Where a person came from to a review, so that the decision leads back there. */
import { useLocation, useParams } from '@tanstack/react-router';

declare module '@tanstack/react-router' {
  interface HistoryState {
    fromTask?: string;
  }
}

/** For a link from the page of a task to a review. */
export const useFromHere = (): { fromTask?: string } => ({
  fromTask: useParams({ strict: false }).id,
});

/** The task whose page the person came from. */
export const useFromTask = (): string | undefined =>
  useLocation({ select: (location) => location.state.fromTask });
