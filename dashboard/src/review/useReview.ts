import {
  type ApproveParams,
  errors,
  type Review,
  type ReviewItem,
  StaleReviewError,
} from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { newIdempotencyKey } from '../api/client';
import { approvalsQuery } from '../api/queries';
import { prepareMarkdown } from '../ui/LazyMarkdown';
import {
  approve,
  argumentsOf,
  fingerprint,
  isQuestion,
  pendingItems,
  type ReviewData,
  reference,
  reject,
  reviewQuery,
} from './data';
import { draftOf, keepDraft } from './drafts';
import { type Edit, type Edits, edited, editedFields, problemsOf, rebase, withEdit } from './edits';
import { type Field, fieldsOf } from './schema';

export interface Call {
  item: ReviewItem;
  fields: Field[];
  edits: Edits;
  /** Whether the decision is about this call too. */
  chosen: boolean;
}

/** Why the content on screen was replaced, and what became of the edits. */
export interface Replaced {
  refused: boolean;
  edits: 'none' | 'kept' | 'dropped';
}

export interface Draft {
  shown: ReviewData;
  edits: Readonly<Record<string, Edits>>;
  left: readonly string[];
  replaced: Replaced | null;
}

const fresh = (shown: ReviewData): Draft => ({ shown, edits: {}, left: [], replaced: null });

/** An output is a text, or data with a schema, which has fields as the arguments of a call do. */
const fieldsOfItem = (item: ReviewItem, { task }: ReviewData): Field[] =>
  item.tool === null && !task.outputSchema
    ? []
    : fieldsOf((item.argumentsSchema ?? null) as never, argumentsOf(item));

/** The item that took the place of this one: the same call, or another call of the same tool. */
const successor = (item: ReviewItem, review: Review): ReviewItem | undefined =>
  review.items.find((each) => each.id === item.id) ??
  review.items.find((each) => each.tool === item.tool && each.serverId === item.serverId);

/** The draft on top of a new review: edits stay where their field still exists. */
export function adopt(draft: Draft, next: ReviewData, refused: boolean): Draft {
  const edits: Record<string, Edits> = {};
  for (const item of draft.shown.review.items) {
    const mine = draft.edits[item.id];
    const after = successor(item, next.review);
    if (!mine || !after || after.decision !== null) continue;
    const kept = rebase(mine, fieldsOfItem(item, draft.shown), fieldsOfItem(after, next));
    if (Object.keys(kept).length) edits[after.id] = kept;
  }
  const had = Object.values(draft.edits).some((each) => Object.keys(each).length > 0);
  const has = Object.keys(edits).length > 0;
  return {
    shown: next,
    edits,
    left: [],
    replaced: { refused, edits: has ? 'kept' : had ? 'dropped' : 'none' },
  };
}

/** Answers to questions are no edits. */
export function withoutEdits(draft: Draft): Draft {
  const questions = draft.shown.review.items.filter(isQuestion).map((item) => item.id);
  const answers = Object.entries(draft.edits).filter(([item]) => questions.includes(item));
  return { ...draft, edits: Object.fromEntries(answers) };
}

/** A draft that was kept while the person was elsewhere. Meanwhile something else may wait. */
export function returned(kept: Draft | null, latest: ReviewData | undefined): Draft | null {
  if (!kept || !latest || fingerprint(kept.shown.review) === fingerprint(latest.review))
    return kept;
  return latest.review.state === 'pending' ? adopt(kept, latest, false) : null;
}

/**
 * What is on screen. A review that had ended, or that was approved meanwhile, makes way. One that
 * was rejected can come back with another proposal, so its edits stay.
 */
export function draftFor(stored: Draft | null, latest: ReviewData | undefined): Draft | null {
  if (!latest) return stored;
  if (!stored) return fresh(latest);
  const ended = stored.shown.review.state !== 'pending' && latest.review.state === 'pending';
  const approved =
    latest.review.state === 'approved' && stored.shown.review.number === latest.review.number;
  return ended || (approved && stored.shown.review.state === 'pending') ? fresh(latest) : stored;
}

/**
 * A review as a person reads it. What is on screen never changes by itself: when something else
 * waits, `changed` is true until the person has asked for it.
 */
export function useReview(id: string) {
  const cache = useQueryClient();
  const query = useQuery(reviewQuery(id));
  const latest = query.data;
  const [stored, setDraft] = useState(() => returned(draftOf(id), latest));
  const draft = draftFor(stored, latest);
  if (draft !== stored) setDraft(draft);
  const same =
    !!draft && !!latest && fingerprint(draft.shown.review) === fingerprint(latest.review);
  // What the digest does not cover, such as costs, stays live.
  const data = same && latest ? latest : (draft?.shown ?? null);
  const ended = !!latest && latest.review.state !== 'pending';

  // An output, or what the agent says, needs it as soon as it is here.
  useEffect(prepareMarkdown, []);
  useEffect(() => keepDraft(id, ended ? null : draft), [id, ended, draft]);

  const calls = useMemo(
    () =>
      data && draft
        ? pendingItems(data.review).map((item) => ({
            item,
            fields: fieldsOfItem(item, data),
            edits: draft.edits[item.id] ?? {},
            chosen: !draft.left.includes(item.id),
          }))
        : [],
    [data, draft],
  );
  const chosen = calls.filter((call) => call.chosen);
  // An answer is not an edit of what was proposed.
  const editCount = chosen
    .filter((call) => !isQuestion(call.item))
    .reduce((sum, c) => sum + editedFields(c.fields, c.edits).length, 0);
  const problems = chosen.reduce((sum, c) => sum + problemsOf(c.fields, c.edits).length, 0);

  const change = (update: (draft: Draft) => Draft) =>
    setDraft((before) => (before ? update(before) : before));
  const showLatest = async (refused: boolean) => {
    const next = await cache.fetchQuery({ ...reviewQuery(id), staleTime: 0 });
    change((before) =>
      next.review.state !== 'pending' ||
      fingerprint(next.review) === fingerprint(before.shown.review)
        ? before
        : adopt(before, next, refused),
    );
  };

  const key = useRef({ body: '', key: '' });
  const keyOf = (body: string) => {
    if (key.current.body !== body) key.current = { body, key: newIdempotencyKey() };
    return key.current.key;
  };
  const settle = (result: ReviewData) => {
    cache.setQueryData(reviewQuery(id).queryKey, result);
    // Events can be faster than this answer: what waits now may be newer than it.
    cache.invalidateQueries({ queryKey: reviewQuery(id).queryKey });
    keepDraft(id, null);
    if (result.review.state === 'pending') return change(() => fresh(result));
    cache.setQueryData(approvalsQuery.queryKey, (before) =>
      before
        ? {
            approvals: before.approvals.filter((each) => each.task.id !== id),
            total: before.total - 1,
          }
        : before,
    );
    cache.invalidateQueries({ queryKey: approvalsQuery.queryKey });
  };
  const refuse = (error: Error) => {
    if (error instanceof StaleReviewError) return showLatest(true);
    // The review says why by now.
    const isOld =
      error instanceof errors.ConflictError || error instanceof errors.SecondPersonRequiredError;
    if (isOld) return query.refetch();
  };
  const approval = useMutation({
    mutationFn: () => {
      if (!data) throw new Error('No review is shown.');
      const body = approvalOf(data.review, calls);
      return approve(id, body, keyOf(`approve ${JSON.stringify(body)}`));
    },
    onSuccess: settle,
    onError: refuse,
  });
  const rejection = useMutation({
    mutationFn: ({ reason, resume }: { reason: string; resume: boolean }) => {
      if (!data) throw new Error('No review is shown.');
      const body = { review: reference(data.review), reason: reason.trim() || null, resume };
      return reject(id, body, keyOf(`reject ${JSON.stringify(body)}`));
    },
    onSuccess: settle,
    onError: refuse,
  });

  return {
    id,
    query,
    data,
    latest,
    calls,
    editCount,
    problems,
    replaced: draft?.replaced ?? null,
    changed: !!latest && !same && !ended,
    ended,
    approval,
    rejection,
    showLatest: () => showLatest(false),
    edit: (item: string, field: Field, edit: Edit | undefined) =>
      change((before) => ({
        ...before,
        edits: { ...before.edits, [item]: withEdit(before.edits[item] ?? {}, field, edit) },
      })),
    /** Undoes the edits of one call. */
    undoAll: (item: string) =>
      change((before) => ({ ...before, edits: { ...before.edits, [item]: {} } })),
    /** Undoes the edits of all calls. Answers to questions are no edits, and stay. */
    discardEdits: () => change(withoutEdits),
    choose: (item: string, yes: boolean) =>
      change((before) => ({
        ...before,
        left: yes ? before.left.filter((each) => each !== item) : [...before.left, item],
      })),
  };
}

export type ReviewState = ReturnType<typeof useReview>;

const MAX_NAMED = 100;

/** Names the calls only where that matters: for edits, and where several calls wait. */
export function approvalOf(review: Review, calls: Call[]): ApproveParams {
  const body: ApproveParams = { review: reference(review) };
  const chosen = calls.filter((call) => call.chosen);
  const edits = chosen.some((call) => editedFields(call.fields, call.edits).length > 0);
  const all = chosen.length === calls.length;
  if (!edits && all && (review.items.length < 2 || chosen.length > MAX_NAMED)) return body;
  return {
    ...body,
    decisions: chosen.map(({ item, fields, edits }) =>
      editedFields(fields, edits).length
        ? { id: item.id, arguments: edited(argumentsOf(item), fields, edits) }
        : { id: item.id },
    ),
  };
}
