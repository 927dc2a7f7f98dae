/** Edits that are not sent yet. They outlive the page, as a phone or a sign-in can end it. */
import { parseExact, stringifyExact } from '../api/exact';
import { keep, kept } from '../shell/kept';
import type { Edit } from './edits';
import type { Draft } from './useReview';

const nameFor = (task: string) => `review.${task}`;

const isEmpty = (draft: Draft): boolean =>
  !draft.left.length && Object.values(draft.edits).every((edits) => !Object.keys(edits).length);

/** JSON has no undefined, which is the value of an edit that leaves its field out. */
const withValue = (edit: Edit): Edit => (Object.keys(edit).length ? edit : { value: undefined });

export function draftOf(task: string): Draft | null {
  const text = kept<string>(nameFor(task));
  if (!text) return null;
  const draft = parseExact<Draft>(text);
  const edits = Object.entries(draft.edits).map(([item, each]) => [
    item,
    Object.fromEntries(Object.entries(each).map(([id, edit]) => [id, withValue(edit)])),
  ]);
  return { ...draft, edits: Object.fromEntries(edits) };
}

export const keepDraft = (task: string, draft: Draft | null): void =>
  keep(nameFor(task), draft && !isEmpty(draft) ? stringifyExact(draft) : null);
