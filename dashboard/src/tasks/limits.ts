/** What tasks that have not ended can still cost. */
import type { Hold, Task } from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

/** The API's largest page, the largest holds first. */
const HOLDS = 100;

/**
 * The most that a task can still cost, in dollars. Its hold pays, and for a subtask also what the
 * tasks above it still hold, up to its own budget. Null if that is not known.
 */
export function stillCosts(
  usage: Task['usage'],
  line: string[],
  holds: Pick<Hold, 'taskId' | 'heldUsd'>[],
): number | null {
  if (usage.budgetUsd === null) return null;
  const amounts = line.map((id) => holds.find((hold) => hold.taskId === id)?.heldUsd);
  if (amounts[0] === undefined) return null;
  const held = amounts.reduce((sum, amount) => sum + Math.round(Number(amount ?? 0) * 1e6), 0);
  const rest = Math.round((Number(usage.budgetUsd) - Number(usage.costUsd)) * 1e6);
  return Math.max(0, line.length > 1 ? Math.min(held, rest) : held) / 1e6;
}

/** Read again whenever the task has spent more. */
export const stillCostsQuery = (task: Task) =>
  queryOptions({
    queryKey: [...keys.task(task.id), 'still-costs', task.usage.run, task.usage.costUsd],
    queryFn: async () => {
      const line = [task.id];
      for (let above = task.parentTaskId; above; ) {
        line.push(above);
        above = (await api.tasks.get(above)).parentTaskId;
      }
      const { holds } = await api.credits.holds({ limit: HOLDS }).firstPage();
      return stillCosts(task.usage, line, holds);
    },
  });
