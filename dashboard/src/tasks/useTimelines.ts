import type { TaskStatus, TimelineStep } from '@rota/sdk';
import { useQueries, useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { isMoving, timelineKey, timelineQuery } from './queries';
import { type IsOpen, settled, type Timelines, wanted } from './timelineRows';

/** The steps of a task and of its open subtasks. The first level is open from the start. */
export function useTimelines(root: string, status: TaskStatus | undefined) {
  const cache = useQueryClient();
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const isOpen: IsOpen = useCallback(
    (child, depth) => toggled.get(child) ?? depth === 1,
    [toggled],
  );
  // A subtask that was open once stays on the chart, so that closing it does not move the bars.
  const isKnown: IsOpen = (child, depth) => toggled.has(child) || isOpen(child, depth);
  const children = wanted(
    root,
    (id) => cache.getQueryData<TimelineStep[]>(timelineKey(id)),
    isKnown,
  );
  const tasks = [{ id: root, live: isMoving(status) }, ...children];
  const ended = status === 'FAILED' || status === 'CANCELLED';
  const results = useQueries({ queries: tasks.map((task) => timelineQuery(task.id, task.live)) });
  const timelines: Timelines = new Map(
    tasks.flatMap(({ id }, at): [string, TimelineStep[]][] => {
      const steps = results[at]?.data;
      return steps ? [[id, settled(steps, ended && id === root)]] : [];
    }),
  );
  const toggle = useCallback(
    (child: string, open: boolean) => setToggled((before) => new Map(before).set(child, open)),
    [],
  );
  return { timelines, isOpen, toggle, error: results[0]?.error ?? null };
}
