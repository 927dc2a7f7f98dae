import type { Task } from '@rota/sdk';
import { useRef } from 'react';
import { ErrorNotice } from '../ui/Notice';
import { useShortcuts } from '../ui/shortcuts';
import type { TaskFilter } from './queries';
import { strings } from './strings';
import { TaskRow } from './TaskRow';
import { useRows } from './useRows';
import type { Selection } from './useSelection';

/** The height of what stays on top of the list while it scrolls. */
const BARS = 86;

/** Tasks that the API put on two pages while the list was moving get a key of their place. */
function keysOf(tasks: { index: number; task: Task | undefined }[]): string[] {
  const seen = new Set<string>();
  return tasks.map(({ index, task }) => {
    if (!task || seen.has(task.id)) return `at-${index}`;
    seen.add(task.id);
    return task.id;
  });
}

export function TaskList({
  filter,
  total,
  stale,
  selection,
}: {
  filter: TaskFilter;
  total: number;
  stale: boolean;
  selection: Selection;
}) {
  const box = useRef<HTMLTableSectionElement>(null);
  const current = useRef(-1);
  const last = useRef<number | null>(null);
  const { rows, rowHeight, taskAt, error } = useRows(box, filter, total);
  const shown = Array.from({ length: rows.end - rows.first }, (_, at) => ({
    index: rows.first + at,
    task: taskAt(rows.first + at),
  }));
  const loaded = shown.flatMap(({ task }) => task ?? []);
  const allSelected = loaded.length > 0 && loaded.every(({ id }) => selection.tasks.has(id));

  const select = (index: number, task: Task, selected: boolean, range: boolean) => {
    const from = range && last.current !== null ? last.current : index;
    const [low, high] = from < index ? [from, index] : [index, from];
    const between = Array.from({ length: high - low + 1 }, (_, at) => taskAt(low + at));
    selection.set([task, ...between.flatMap((each) => each ?? [])], selected);
    last.current = index;
  };
  const move = (step: number) => {
    const list = box.current;
    if (!list) return;
    const top = Math.ceil(Math.max(0, BARS - list.getBoundingClientRect().top) / rowHeight);
    const isNear = current.current >= rows.first && current.current < rows.end;
    const index = Math.min(Math.max(isNear ? current.current + step : top, 0), total - 1);
    current.current = index;
    const row = list.querySelector<HTMLElement>(`[data-index="${index}"] a`);
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: 'nearest' });
  };
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const task = taskAt(current.current);
      if (task) select(current.current, task, !selection.tasks.has(task.id), false);
    },
  });

  return (
    <>
      {error && <ErrorNotice error={error} />}
      <table
        className="tl"
        aria-label={strings.tasks}
        aria-rowcount={total + 1}
        aria-busy={stale || undefined}
      >
        <thead>
          <tr className="tl-head" aria-rowindex={1}>
            <th scope="col">
              <label className="check">
                <input
                  type="checkbox"
                  aria-label={strings.selectShown}
                  checked={allSelected}
                  onChange={() => selection.set(loaded, !allSelected)}
                />
              </label>
            </th>
            <th scope="col">{strings.columns.status}</th>
            <th scope="col">{strings.columns.name}</th>
            <th scope="col">{strings.columns.agent}</th>
            <th scope="col" className="end">
              {strings.columns.cost}
            </th>
            <th scope="col" className="end">
              {strings.columns.started}
            </th>
          </tr>
        </thead>
        <tbody
          ref={box}
          className="tl-body"
          style={{ height: total * rowHeight }}
          onFocus={(event) => {
            const row = event.target.closest<HTMLElement>('[data-index]');
            if (row) current.current = Number(row.dataset.index);
          }}
        >
          {keysOf(shown).map((key, at) => {
            const { index, task } = shown[at] ?? { index: 0, task: undefined };
            return (
              <TaskRow
                key={key}
                index={index}
                top={index * rowHeight}
                task={task}
                selected={task ? selection.tasks.has(task.id) : false}
                onSelect={(selected, range) => task && select(index, task, selected, range)}
              />
            );
          })}
        </tbody>
      </table>
    </>
  );
}
