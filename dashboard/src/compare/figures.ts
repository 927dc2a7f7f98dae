/** What two runs did after the point where one was forked from the other. */
import type { ForkOrigin, TimelineStep } from '@rota/sdk';
import { total, union } from '../tasks/folding';
import { amountsOf, intervalsOf, MAX_DEPTH, type Timelines } from '../tasks/timelineRows';

/**
 * The steps of one run, with those that it kept of earlier runs. A timeline shows a step that a
 * retry kept only where it was made.
 */
export function stepsOfRun(steps: TimelineStep[], run: number): TimelineStep[] {
  const found = new Set<TimelineStep>();
  let first = Number.POSITIVE_INFINITY;
  for (let each = run; each >= 1; each -= 1) {
    const own = steps.filter((step) => step.run === each && step.step !== null);
    const kept = own.filter((step) => (step.step ?? 0) < first);
    for (const step of kept) found.add(step);
    // A retry can also keep a part of a step: the answer of the model, but not all of its calls.
    const answered = kept.filter((step) => step.kind !== 'tool');
    const begins = Math.min(...answered.map((step) => step.step ?? 0));
    first = Math.min(first, begins);
  }
  return steps.filter((step) => found.has(step));
}

/** The calls that count in a comparison: what comes after the fork. */
export const afterFork = (steps: TimelineStep[], run: number, origin: ForkOrigin | null) =>
  stepsOfRun(steps, origin?.run ?? run).filter(
    (step) => !step.copied && (step.step ?? 0) > (origin?.step ?? 0),
  );

export interface Figures {
  costUsd: number;
  inputTokens: number;
  outputTokens: number;
  modelCalls: number;
  workedMs: number;
}

/** The figures of these steps of a task, with the subtasks that they delegated. */
export function figuresOf(
  id: string,
  counted: TimelineStep[],
  timelines: Timelines,
  now: number,
): Figures {
  const parts = new Map([[id, counted]]);
  const visit = (steps: TimelineStep[], depth: number) => {
    for (const { childTaskId: child } of steps) {
      const below = child && !parts.has(child) && depth < MAX_DEPTH && timelines.get(child);
      if (!child || !below) continue;
      parts.set(child, below);
      visit(below, depth + 1);
    }
  };
  visit(counted, 0);
  const { costUsd, inputTokens, outputTokens } = amountsOf(id, parts);
  const calls = [...parts.values()].flat();
  return {
    costUsd,
    inputTokens,
    outputTokens,
    modelCalls: calls.filter((step) => step.kind === 'model' || step.kind === 'summary').length,
    workedMs: total(union(intervalsOf(parts, now).work)),
  };
}
