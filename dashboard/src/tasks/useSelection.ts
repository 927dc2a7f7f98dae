import type { Task } from '@rota/sdk';
import { useCallback, useState } from 'react';

export interface Selection {
  tasks: ReadonlyMap<string, Task>;
  set: (tasks: Task[], selected: boolean) => void;
  clear: () => void;
}

/** The tasks that somebody ticked, also those that are out of sight by now. */
export function useSelection(): Selection {
  const [tasks, setTasks] = useState<ReadonlyMap<string, Task>>(new Map());
  const set = useCallback((changed: Task[], selected: boolean) => {
    setTasks((before) => {
      const after = new Map(before);
      for (const task of changed) {
        if (selected) after.set(task.id, task);
        else after.delete(task.id);
      }
      return after;
    });
  }, []);
  const clear = useCallback(() => setTasks(new Map()), []);
  return { tasks, set, clear };
}
