/** Does the same to many tasks, a few at a time, and reports each of them. */
import type { RetryFrom, Task } from '@rota/sdk';
import { api, newIdempotencyKey } from '../api/client';

export type BulkAction = { kind: 'cancel' } | { kind: 'retry'; from: RetryFrom };
export type ItemState = 'waiting' | 'busy' | 'done' | 'failed';

export interface ItemResult {
  state: ItemState;
  message?: string;
}

const AT_ONCE = 4;

async function act(task: Task, action: BulkAction, key: string): Promise<void> {
  if (action.kind === 'cancel') await api.tasks.cancel(task);
  else await api.tasks.retry(task, { from: action.from }, { idempotencyKey: key });
}

export async function runBulk(
  tasks: Task[],
  action: BulkAction,
  report: (id: string, result: ItemResult) => void,
): Promise<void> {
  const queue = tasks.map((task) => ({ task, key: newIdempotencyKey() }));
  const work = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { task, key } = next;
      report(task.id, { state: 'busy' });
      try {
        await act(task, action, key);
        report(task.id, { state: 'done' });
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        report(task.id, { state: 'failed', message });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, queue.length) }, work));
}
