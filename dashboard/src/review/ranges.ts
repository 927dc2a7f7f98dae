/** Which stretches of a text have been on screen. */
export interface Range {
  from: number;
  to: number;
}

/** Rounding must not leave a gap between two stretches. */
const SLACK = 2;

/** The stretches with one more, in order, joined where they touch. */
export function withRange(ranges: readonly Range[], more: Range): Range[] {
  if (more.to <= more.from) return [...ranges];
  const sorted = [...ranges, more].sort((a, b) => a.from - b.from);
  const joined: Range[] = [];
  for (const { from, to } of sorted) {
    const last = joined.at(-1);
    if (last && from <= last.to + SLACK) last.to = Math.max(last.to, to);
    else joined.push({ from, to });
  }
  return joined;
}

/** Where the first stretch begins that has not been on screen. Null if there is none. */
export function firstGap(ranges: readonly Range[], height: number): number | null {
  const [first] = ranges;
  if (!first || first.from > SLACK) return 0;
  return first.to >= height - SLACK ? null : first.to;
}

export const overlap = (ranges: readonly Range[]): Range => ({
  from: Math.max(...ranges.map((range) => range.from)),
  to: Math.min(...ranges.map((range) => range.to)),
});

/** What is still true after the content became higher or lower at or below this place. */
export const above = (ranges: readonly Range[], place: number): Range[] =>
  ranges
    .filter((range) => range.from < place)
    .map((range) => ({ from: range.from, to: Math.min(range.to, place) }));
