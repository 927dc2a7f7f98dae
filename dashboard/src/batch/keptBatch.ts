/** A batch as the tab keeps it: it outlives its page, also while it is being sent. */
import { keep, kept } from '../shell/kept';
import { type Batch, readBatch } from './lines';
import { givenUp, isTooOld, type Numbered, type Outcome, type Part } from './send';
import type { Sent } from './useBatch';

interface KeptBatch {
  agent: string;
  text: string;
  outcomes: [number, Outcome][];
  /** The requests that have no answer, with the numbers of their tasks. */
  parts: { key: string; numbers: number[]; uncertain: boolean; sentAt: number | null }[];
}

/** The tasks of all lines, also of those that cannot be sent. */
export const tasksOf = ({ lines }: Batch, agent: string): Numbered[] =>
  lines.map(({ task }, number) => ({ number, task: { ...task, agent } }));

/** Keeps it until each of its tasks exists, or the person has done with it. */
export function keepBatch(name: string, sent: Sent | null, parts: Part[]): void {
  const outcomes = [...(sent?.outcomes ?? [])];
  const isDone = sent?.phase === 'ended' && outcomes.every(([, { kind }]) => kind === 'created');
  if (!sent || isDone) {
    keep(name, null);
    return;
  }
  const value: KeptBatch = {
    agent: sent.agent,
    text: sent.text,
    outcomes,
    parts: parts.map(({ tasks, ...part }) => ({
      ...part,
      numbers: tasks.map(({ number }) => number),
    })),
  };
  keep(name, value);
}

/** The batch that was kept, and its requests that have no answer. */
export function keptBatch(name: string): { sent: Sent; parts: Part[] } | null {
  const found = kept<KeptBatch>(name);
  if (!found) return null;
  const { agent, text } = found;
  const batch = readBatch(text);
  const tasks = tasksOf(batch, agent);
  const left = found.parts.map(({ numbers, ...part }, at) => ({
    ...part,
    tasks: numbers.flatMap((number) => tasks[number] ?? []),
    // The first may have been sent when the page went.
    uncertain: part.uncertain || at === 0,
  }));
  const tooOld = left.some(isTooOld);
  const parts = tooOld ? [] : left;
  const sent: Sent = {
    agent,
    text,
    batch,
    outcomes: new Map([...found.outcomes, ...(tooOld ? givenUp(left) : [])]),
    phase: parts.length ? 'failed' : 'ended',
    error: null,
    uncertain: parts.length > 0,
    waits: false,
    stops: false,
  };
  return { sent, parts };
}
