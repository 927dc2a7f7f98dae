import { type Approval, StaleReviewError } from '@rota/sdk';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { approve, reference, reject } from '../review/data';
import { keepDraft } from '../review/drafts';
import { bulkStrings } from './bulkStrings';

const AT_ONCE = 4;

/** What became of one review: true when it is decided, else what went wrong. */
export type Result = true | string;

function why(error: unknown): string {
  if (error instanceof StaleReviewError) return bulkStrings.changed;
  return error instanceof Error ? error.message : String(error);
}

/**
 * Decides each review for itself, with the number and digest that were on screen. One that fails
 * stops none of the others.
 */
export function useBulk() {
  const cache = useQueryClient();
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map());
  const [running, setRunning] = useState(false);
  const attempts = useRef(new Map<string, string>());
  const decide = async (approvals: Approval[], how: 'approve' | 'reject', reason: string) => {
    setRunning(true);
    const queue = [...approvals];
    const one = async ({ task, review }: Approval): Promise<Result> => {
      const key = attempts.current.get(task.id) ?? newIdempotencyKey();
      attempts.current.set(task.id, key);
      const shown = { review: reference(review) };
      try {
        if (how === 'approve') await approve(task.id, shown, key);
        else await reject(task.id, { ...shown, reason: reason.trim() || null }, key);
        keepDraft(task.id, null);
        return true;
      } catch (error) {
        return why(error);
      }
    };
    const work = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { id } = next.task;
        const result = await one(next);
        setResults((before) => new Map(before).set(id, result));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    setRunning(false);
    for (const queryKey of [keys.approvals, ...approvals.map(({ task }) => keys.task(task.id))]) {
      cache.invalidateQueries({ queryKey });
    }
  };
  return { results, running, decide };
}
