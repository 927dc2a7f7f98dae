/** The rows of a timeline: the steps of a task, with those of its subtasks below their call. */
import type { Task, TimelineStep } from '@rota/sdk';
import { type Interval, isWaiting, isWork, spanOf } from './folding';

/** The steps of each task that was read, by the id of the task. */
export type Timelines = ReadonlyMap<string, TimelineStep[]>;

export interface Amounts {
  inputTokens: number;
  outputTokens: number;
  costUsd: number;
  /** False while the steps of a subtask are not read. */
  complete: boolean;
}

export interface RunRow {
  kind: 'run';
  key: string;
  run: number;
}

export interface StepRow {
  kind: 'step';
  key: string;
  step: TimelineStep;
  /** The task that the step belongs to. */
  task: string;
  depth: number;
  /** The model of a call, where the task did not use the same one just before. */
  model: string | null;
  /** Counts the calls of the task itself. Null for decisions and for steps of subtasks. */
  number: number | null;
  /** The subtask of a call that delegates. */
  child: { id: string; open: boolean; loaded: boolean; amounts: Amounts } | null;
}

export type Row = RunRow | StepRow;

/** Tasks are nested at most this deep. */
export const MAX_DEPTH = 8;

export type IsOpen = (child: string, depth: number) => boolean;

/** The subtasks whose steps are wanted: those that are open, level by level. */
export function wanted(
  root: string,
  read: (id: string) => TimelineStep[] | undefined,
  isOpen: IsOpen,
): { id: string; live: boolean }[] {
  const found: { id: string; live: boolean }[] = [];
  const visit = (id: string, depth: number) => {
    for (const step of read(id) ?? []) {
      const child = step.childTaskId;
      if (!child || child === root || found.some((each) => each.id === child)) continue;
      if (depth > MAX_DEPTH || !isOpen(child, depth)) continue;
      found.push({ id: child, live: !step.finishedAt });
      visit(child, depth + 1);
    }
  };
  visit(root, 1);
  return found;
}

/** Tokens and cost of a task and its subtasks. Added as whole micro-dollars, to stay exact. */
export function amountsOf(id: string, timelines: Timelines, depth = 0): Amounts {
  const steps = timelines.get(id);
  const sum = { inputTokens: 0, outputTokens: 0, costUsd: 0, complete: Boolean(steps) };
  let micros = 0;
  for (const step of steps ?? []) {
    sum.inputTokens += step.inputTokens;
    sum.outputTokens += step.outputTokens;
    micros += Math.round(Number(step.costUsd) * 1e6);
    if (step.childTaskId && depth < MAX_DEPTH) {
      const below = amountsOf(step.childTaskId, timelines, depth + 1);
      sum.inputTokens += below.inputTokens;
      sum.outputTokens += below.outputTokens;
      micros += Math.round(below.costUsd * 1e6);
      sum.complete &&= below.complete;
    }
  }
  return { ...sum, costUsd: micros / 1e6 };
}

/** What a task cost with its subtasks. Until all of them are read, its own cost is the least. */
export const spentOf = (task: Task, timelines: Timelines): number =>
  Math.max(Number(task.usage.costUsd), amountsOf(task.id, timelines).costUsd);

export function rowsOf(root: string, timelines: Timelines, isOpen: IsOpen): Row[] {
  const rows: Row[] = [];
  const steps = timelines.get(root) ?? [];
  const severalRuns = new Set(steps.map((step) => step.run)).size > 1;
  const lastModel = new Map<string, string | null>();
  let run = 0;
  let calls = 0;
  const add = (
    task: string,
    step: TimelineStep,
    key: string,
    depth: number,
    number: number | null,
  ) => {
    const id = step.childTaskId;
    const open = id !== null && depth < MAX_DEPTH && isOpen(id, depth + 1);
    const loaded = id !== null && timelines.has(id);
    const child = id ? { id, open, loaded, amounts: amountsOf(id, timelines, depth + 1) } : null;
    const isNew = step.kind === 'model' && lastModel.get(task) !== step.name;
    if (isNew) lastModel.set(task, step.name);
    const model = isNew ? step.name : null;
    rows.push({ kind: 'step', key, task, step, depth, model, number, child });
    if (!id || !open) return;
    for (const below of timelines.get(id) ?? [])
      add(id, below, `${key}/${below.id}`, depth + 1, null);
  };
  for (const step of steps) {
    if (severalRuns && step.run !== run) {
      run = step.run;
      rows.push({ kind: 'run', key: `run-${run}-${step.id}`, run });
    }
    if (step.kind !== 'approval') calls += 1;
    add(root, step, step.id, 0, step.kind === 'approval' ? null : calls);
  }
  return rows;
}

/** The steps, with an end for calls that their run left without a result. They took no known time. */
export function settled(steps: TimelineStep[], ended: boolean): TimelineStep[] {
  const last = steps.reduce((run, step) => Math.max(run, step.run), 0);
  const isLost = (step: TimelineStep) =>
    isWork(step) && !step.finishedAt && (ended || step.run < last);
  return steps.map((step) => (isLost(step) ? { ...step, finishedAt: step.startedAt } : step));
}

/** Without what a fork copied from its original, where it was made. */
export const ownSteps = (timelines: Timelines): Timelines =>
  new Map([...timelines].map(([id, steps]) => [id, steps.filter((step) => !step.copied)]));

/**
 * When somebody worked, and when somebody was waited for. A call that delegates is no work by
 * itself once the steps of its subtask are known.
 */
export function intervalsOf(
  timelines: Timelines,
  now: number,
): { work: Interval[]; waits: Interval[] } {
  const work: Interval[] = [];
  const waits: Interval[] = [];
  for (const steps of timelines.values()) {
    for (const step of steps) {
      if (isWaiting(step)) waits.push(spanOf(step, now));
      else if (isWork(step) && !timelines.get(step.childTaskId ?? '')?.length) {
        work.push(spanOf(step, now));
      }
    }
  }
  return { work, waits };
}
