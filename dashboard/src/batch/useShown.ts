import { useState } from 'react';

export const STEP = 200;

/** The first of many rows, and more of them when a person asks. */
export function useShown<Row>(rows: Row[], first: number) {
  const [end, setEnd] = useState(first);
  return {
    shown: rows.slice(0, end),
    left: Math.max(0, rows.length - end),
    showMore: () => setEnd(end + STEP),
  };
}
