import type { Task } from '@rota/sdk';
import { useQueries } from '@tanstack/react-query';
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';
import { type TaskFilter, taskPageQuery } from './queries';
import { PAGE_SIZE, pagesOf, shift, type Window, windowOf } from './windowing';

/** The rows near the screen, from how far the page is scrolled. */
function useWindow(box: RefObject<HTMLElement | null>, rows: number) {
  const [rowHeight, setRowHeight] = useState(44);
  const [window_, setWindow] = useState<Window>(() => windowOf(0, innerHeight, rowHeight, rows));
  useEffect(() => {
    let frame = 0;
    const measure = () => {
      frame = 0;
      const element = box.current;
      if (!element) return;
      const height = Number.parseFloat(getComputedStyle(element).getPropertyValue('--row')) || 44;
      const top = Math.max(0, -element.getBoundingClientRect().top);
      const next = windowOf(top, innerHeight, height, rows);
      setRowHeight(height);
      setWindow((before) =>
        before.first === next.first && before.end === next.end ? before : next,
      );
    };
    const later = () => {
      frame ||= requestAnimationFrame(measure);
    };
    measure();
    addEventListener('scroll', later, { passive: true });
    addEventListener('resize', later);
    return () => {
      cancelAnimationFrame(frame);
      removeEventListener('scroll', later);
      removeEventListener('resize', later);
    };
  }, [box, rows]);
  return { rowHeight, window: window_ };
}

/**
 * The tasks near the screen, read page by page. New tasks on top push the others down; the page
 * is scrolled by as much, so that what somebody reads stays where it is.
 */
export function useRows(box: RefObject<HTMLElement | null>, filter: TaskFilter, total: number) {
  const { rowHeight, window: rows } = useWindow(box, total);
  const pages = pagesOf(rows);
  const results = useQueries({ queries: pages.map((page) => taskPageQuery(filter, page)) });
  const taskAt = (index: number): Task | undefined =>
    results[Math.floor(index / PAGE_SIZE) - (pages[0] ?? 0)]?.data?.tasks[index % PAGE_SIZE];

  const anchor = useRef<{ id: string; index: number; filter: TaskFilter } | null>(null);
  useLayoutEffect(() => {
    const top = box.current ? -box.current.getBoundingClientRect().top : 0;
    const known = anchor.current?.filter === filter ? anchor.current : null;
    const moved = shift(known, rows, (index) => taskAt(index)?.id);
    // At the top of the list, new tasks come into sight instead.
    if (moved !== 0 && top > rowHeight) scrollBy(0, moved * rowHeight);
    const index = Math.max(0, Math.floor(top / rowHeight)) + (top > rowHeight ? moved : 0);
    const id = taskAt(index)?.id;
    anchor.current = id ? { id, index, filter } : null;
  });
  return { rows, rowHeight, taskAt, error: results.find((result) => result.error)?.error };
}
