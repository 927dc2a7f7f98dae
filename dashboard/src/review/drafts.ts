/** Edits that are not sent yet. They stay while a person looks at something else. */
import type { Draft } from './useReview';

const drafts = new Map<string, Draft>();

/** The browser asks before it drops them. */
const warn = (event: BeforeUnloadEvent) => event.preventDefault();

const isEmpty = (draft: Draft): boolean =>
  !draft.left.length && Object.values(draft.edits).every((edits) => !Object.keys(edits).length);

export const draftOf = (task: string): Draft | null => drafts.get(task) ?? null;

export function keepDraft(task: string, draft: Draft | null): void {
  if (draft && !isEmpty(draft)) drafts.set(task, draft);
  else drafts.delete(task);
  if (drafts.size) addEventListener('beforeunload', warn);
  else removeEventListener('beforeunload', warn);
}

/** After signing out, the next person must not find them. */
export function forgetDrafts(): void {
  drafts.clear();
  removeEventListener('beforeunload', warn);
}
