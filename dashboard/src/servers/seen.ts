/** Which parts of something tall have been on screen. */
export interface Slice {
  from: number;
  to: number;
}

/** Adds a part. Parts that touch become one. */
export function cover(seen: Slice[], part: Slice): Slice[] {
  if (part.to <= part.from) return seen;
  let { from, to } = part;
  const apart: Slice[] = [];
  for (const each of seen) {
    if (each.to < from - 1 || each.from > to + 1) apart.push(each);
    else {
      from = Math.min(from, each.from);
      to = Math.max(to, each.to);
    }
  }
  return [...apart, { from, to }];
}

/** Whether one part reaches from the top to the bottom, give or take a rounded pixel. */
export const covers = (seen: Slice[], height: number): boolean =>
  seen.some((each) => each.from <= 1 && each.to >= height - 1);
