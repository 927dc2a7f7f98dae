/**
 * Where each step stands on the chart of a timeline. Time in which an agent worked keeps its
 * proportions. Idle time (people who have yet to decide, long gaps) takes one narrow column.
 */
import type { TimelineStep } from '@rota/sdk';

export interface Interval {
  from: number;
  to: number;
}

/** A stretch of idle time, and the column that it takes, in percent of the chart. */
export interface Fold extends Interval {
  at: number;
  width: number;
}

export interface Tick {
  at: number;
  /** Milliseconds of work until here, or the length of the idle time that is folded here. */
  ms: number;
  fold: boolean;
  /** The lengths of further folds that stand too close for labels of their own. */
  also?: number[];
}

export interface Scale {
  folds: Fold[];
  ticks: Tick[];
  /** The place of a moment, in percent of the chart. */
  x: (time: number) => number;
}

/** The rest of the width is for the label after the last bar. */
const END = 88;
const FOLD_WIDTH = 4;
const FOLDS_WIDTH = 32;
/** How much room the labels of the axis need. Those of folds are longer. */
const LABEL_WIDTH = 8;
const FOLD_LABEL_WIDTH = 13;
const TICKS = 5;

const length = ({ from, to }: Interval): number => to - from;
export const total = (intervals: Interval[]): number =>
  intervals.reduce((sum, interval) => sum + length(interval), 0);

/** The same time without overlaps, in order. */
export function union(intervals: Interval[]): Interval[] {
  const merged: Interval[] = [];
  for (const { from, to } of [...intervals].sort((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}

/** When a step took place. Clocks differ, so an end is never before its start. */
export function spanOf(step: TimelineStep, now: number): Interval {
  const from = Date.parse(step.startedAt);
  const to = step.finishedAt ? Date.parse(step.finishedAt) : now;
  // A rejected call never started: only its end is known.
  if (step.outcome === 'rejected' && step.finishedAt) return { from: to, to };
  return { from, to: Math.max(from, to) };
}

/** Whether the step is a call that was made, so that its time is work and not waiting. */
export const isWork = (step: TimelineStep): boolean =>
  step.kind !== 'approval' && step.state !== 'planned' && step.state !== 'gated';

export const isWaiting = (step: TimelineStep): boolean => step.kind === 'approval';

function idle(busy: Interval[], whole: Interval): Interval[] {
  const found: Interval[] = [];
  let from = whole.from;
  for (const interval of busy) {
    if (interval.from > from) found.push({ from, to: interval.from });
    from = Math.max(from, interval.to);
  }
  if (whole.to > from) found.push({ from, to: whole.to });
  return found;
}

const overlap = (a: Interval, b: Interval): number =>
  Math.max(0, Math.min(a.to, b.to) - Math.max(a.from, b.from));

/** Waiting for people is folded from one second, other gaps only where they would fill the chart. */
function isFolded(gap: Interval, waits: Interval[], worked: number): boolean {
  const waited = total(union(waits).map((wait) => ({ from: 0, to: overlap(gap, wait) })));
  if (waited >= 1_000 && waited >= length(gap) / 2) return true;
  return length(gap) >= Math.max(5_000, worked / 10);
}

const NICE = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400];

function tickStep(ms: number): number {
  const wanted = ms / TICKS / 1_000;
  if (wanted < 1) return 1_000 * 10 ** Math.ceil(Math.log10(Math.max(wanted, 0.001)));
  return 1_000 * (NICE.find((seconds) => seconds >= wanted) ?? 86_400 * Math.ceil(wanted / 86_400));
}

function ticksOf(visible: number, folds: Fold[], place: (worked: number) => number): Tick[] {
  const ticks: Tick[] = [];
  const isFree = (at: number, fold: boolean) =>
    ticks.every(
      (tick) => Math.abs(tick.at - at) >= (tick.fold || fold ? FOLD_LABEL_WIDTH : LABEL_WIDTH),
    );
  for (const fold of folds) {
    const at = fold.at + fold.width / 2;
    const last = ticks.at(-1);
    if (isFree(at, true)) ticks.push({ at, ms: length(fold), fold: true });
    else if (last) last.also = [...(last.also ?? []), length(fold)];
  }
  const step = tickStep(visible);
  for (let worked = 0; worked <= visible && visible > 0; worked += step) {
    const at = place(worked);
    if (isFree(at, false)) ticks.push({ at, ms: worked, fold: false });
  }
  return ticks.sort((a, b) => a.at - b.at);
}

/** The chart for these intervals of work and of waiting for people. */
export function scaleOf(work: Interval[], waits: Interval[]): Scale {
  const all = [...work, ...waits];
  if (!all.length) return { folds: [], ticks: [], x: () => 0 };
  const whole = {
    from: Math.min(...all.map((interval) => interval.from)),
    to: Math.max(...all.map((interval) => interval.to)),
  };
  const busy = union(work);
  const gaps = idle(busy, whole).filter((gap) => isFolded(gap, waits, total(busy)));
  const visible = length(whole) - total(gaps);
  const width = gaps.length ? Math.min(FOLD_WIDTH, FOLDS_WIDTH / gaps.length) : 0;
  const perMs = visible > 0 ? (END - width * gaps.length) / visible : 0;

  const folds: Fold[] = [];
  let folded = 0;
  for (const gap of gaps) {
    const at = (gap.from - whole.from - folded) * perMs + folds.length * width;
    folds.push({ ...gap, at, width });
    folded += length(gap);
  }

  const x = (time: number): number => {
    const moment = Math.min(Math.max(time, whole.from), whole.to);
    let before = 0;
    let columns = 0;
    for (const fold of folds) {
      if (moment >= fold.to) {
        before += length(fold);
        columns += 1;
      } else if (moment > fold.from) {
        return fold.at + ((moment - fold.from) / length(fold)) * fold.width;
      }
    }
    return (moment - whole.from - before) * perMs + columns * width;
  };
  const place = (worked: number): number => {
    const passed = folds.filter((fold, index) => fold.at - index * width < worked * perMs);
    return worked * perMs + passed.length * width;
  };
  return { folds, ticks: ticksOf(visible, folds, place), x };
}

/** How much of the chart a character of a label takes, and the space before it. */
const CHARACTER = 1.3;
const SPACE = 2;

/**
 * Where the words of a bar stand: after it, or after the next fold if they would lie on it, or
 * before the bar. `null` means before.
 */
export function labelAt(text: string, from: number, to: number, folds: Fold[]): number | null {
  const needs = SPACE + text.length * CHARACTER;
  const isFree = (at: number) =>
    at + needs <= 100 && folds.every((fold) => at + needs <= fold.at || at >= fold.at + fold.width);
  const places = [to, ...folds.map((fold) => fold.at + fold.width).filter((end) => end > to)];
  const found = places.find(isFree);
  if (found !== undefined) return found;
  const before = from - needs;
  const fits = folds.every((fold) => from <= fold.at || before >= fold.at + fold.width);
  return before >= 0 && (fits || to + needs > 100) ? null : to;
}

/** The columns of the folds as CSS: one mask serves every row, however many folds there are. */
export function foldMask(folds: Fold[]): string {
  const stops = folds.flatMap(({ at, width }) => [
    `transparent ${at}%`,
    `black ${at}% ${at + width}%`,
    `transparent ${at + width}%`,
  ]);
  return `linear-gradient(to right, ${['transparent 0', ...stops].join(', ')})`;
}

/** A thin line at both sides of each fold. */
export function foldEdges(folds: Fold[]): string {
  const line = (from: string, to: string) => [
    `transparent ${from}`,
    `var(--line-strong) ${from} ${to}`,
    `transparent ${to}`,
  ];
  const stops = folds.flatMap(({ at, width }) => [
    ...line(`${at}%`, `calc(${at}% + 1px)`),
    ...line(`calc(${at + width}% - 1px)`, `${at + width}%`),
  ]);
  return `linear-gradient(to right, ${['transparent 0', ...stops].join(', ')})`;
}
