/** Which rows of a long list are on screen, and which pages they are on. */

/** The API's pages. One page fills several screens. */
export const PAGE_SIZE = 50;
/** Browsers draw no element that is higher than some millions of pixels. */
export const MAX_ROWS = 100_000;
const OVERSCAN = 6;

export interface Window {
  first: number;
  /** Exclusive. */
  end: number;
}

/** The rows to draw. `top` is how far the list has been scrolled, in pixels. */
export function windowOf(top: number, height: number, rowHeight: number, rows: number): Window {
  const end = Math.min(rows, Math.ceil((top + height) / rowHeight) + OVERSCAN);
  const first = Math.max(0, Math.min(Math.floor(top / rowHeight) - OVERSCAN, end - 1));
  return { first, end: Math.max(first, end) };
}

/** The pages that have these rows. */
export function pagesOf({ first, end }: Window): number[] {
  if (end <= first) return [0];
  const from = Math.floor(first / PAGE_SIZE);
  const to = Math.floor((end - 1) / PAGE_SIZE);
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

/**
 * How many rows the list has moved under the reader: where the row that was on top of the screen
 * is now. Zero if it is not in sight any more.
 */
export function shift(
  anchor: { id: string; index: number } | null,
  rows: Window,
  idAt: (index: number) => string | undefined,
): number {
  if (!anchor || idAt(anchor.index) === anchor.id) return 0;
  for (let index = rows.first; index < rows.end; index += 1) {
    if (idAt(index) === anchor.id) return index - anchor.index;
  }
  return 0;
}
