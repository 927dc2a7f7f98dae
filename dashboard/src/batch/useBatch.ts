import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { keepBatch, keptBatch, tasksOf } from './keptBatch';
import type { Batch } from './lines';
import { givenUp, type Outcome, type Outcomes, type Part, partsOf, sendParts } from './send';

/** A batch that was sent, or is being sent. */
export interface Sent {
  agent: string;
  text: string;
  batch: Batch;
  /** By the index of the line in the batch. */
  outcomes: Outcomes;
  phase: 'sending' | 'failed' | 'ended';
  error: unknown;
  /** Whether the request that failed may have created tasks. */
  uncertain: boolean;
  /** Whether the requests that are left wait for the rate limit. */
  waits: boolean;
  /** Whether it ends after the request that is under way. */
  stops: boolean;
}

async function post({ key, tasks }: Part): Promise<Outcome[]> {
  const bodies = tasks.map(({ task }) => task);
  const results = await api.tasks.createBatch(bodies, { idempotencyKey: key });
  return results.map(({ task, error }) =>
    task ? { kind: 'created', id: task.id } : { kind: 'refused', message: error.message },
  );
}

/** `name`: what the tab keeps it as. */
export function useBatch(name: string) {
  const cache = useQueryClient();
  const [before] = useState(() => keptBatch(name));
  const [sent, setSent] = useState<Sent | null>(before?.sent ?? null);
  const parts = useRef<Part[]>(before?.parts ?? []);
  const stopped = useRef(false);
  const change = (changed: Partial<Sent>) =>
    setSent((before) => before && { ...before, ...changed });
  const add = (outcomes: Outcomes) =>
    setSent(
      (before) => before && { ...before, outcomes: new Map([...before.outcomes, ...outcomes]) },
    );

  useEffect(() => {
    stopped.current = false;
    return () => {
      stopped.current = true;
    };
  }, []);

  useEffect(() => keepBatch(name, sent, parts.current), [name, sent]);

  const end = () => {
    add(givenUp(parts.current));
    parts.current = [];
    change({ phase: 'ended', error: null, waits: false });
  };
  const run = async () => {
    stopped.current = false;
    change({ phase: 'sending', error: null, stops: false });
    try {
      await sendParts(parts.current, {
        send: post,
        report: (outcomes) => {
          add(outcomes);
          change({ waits: false });
        },
        wait: async (seconds) => {
          change({ waits: true });
          const until = Date.now() + seconds * 1_000;
          while (Date.now() < until && !stopped.current) {
            await new Promise((resolve) => setTimeout(resolve, 250));
          }
        },
        isStopped: () => stopped.current,
      });
      end();
    } catch (error) {
      const uncertain = parts.current[0]?.uncertain ?? false;
      change({ phase: 'failed', error, uncertain, waits: false });
    }
    for (const queryKey of [keys.tasks, keys.approvals, keys.money]) {
      cache.invalidateQueries({ queryKey });
    }
  };
  const start = (agent: string, text: string, batch: Batch) => {
    const outcomes = new Map<number, Outcome>();
    for (const [number, { problem }] of batch.lines.entries()) {
      if (problem !== undefined) outcomes.set(number, { kind: 'refused', message: problem });
    }
    parts.current = partsOf(tasksOf(batch, agent).filter(({ number }) => !outcomes.has(number)));
    const idle = { error: null, uncertain: false, waits: false, stops: false };
    setSent({ agent, text, batch, outcomes, phase: 'sending', ...idle });
    run();
  };
  return {
    sent,
    start,
    tryAgain: run,
    /** Ends after the request that is under way, if there is one. */
    stop: () => {
      stopped.current = true;
      change({ stops: true });
      if (sent?.phase === 'failed') end();
    },
    close: () => setSent(null),
  };
}
