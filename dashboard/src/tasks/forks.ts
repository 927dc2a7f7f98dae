import type { ForkOptions, ForkTask, Task, TimelineStep } from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

/** How a task can be forked. */
export const forkQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.task(id), 'fork'],
    queryFn: async () => ({ fork: await api.tasks.forkOptions(id) }),
  });

/** What a fork can cost and use, and what it needs. Asked for again when the money of the account moves. */
export const forkQuoteQuery = (id: string, body: ForkTask) =>
  queryOptions({
    queryKey: [...keys.money, 'fork', id, body],
    queryFn: async ({ signal }) => ({ quote: await api.tasks.quoteFork(id, body, { signal }) }),
    staleTime: 30_000,
  });

/** The version and the model that a fork uses if nobody chooses: those of the task, if possible. */
export function defaultsOf(task: Task, options: ForkOptions): { version: number; model: string } {
  const own = task.agentVersion ?? 1;
  const version = options.versions.includes(own) ? own : (options.versions[0] ?? own);
  const isGone = task.model !== null && !options.models.includes(task.model);
  return { version, model: (isGone ? options.models[0] : task.model) ?? '' };
}

/**
 * The step that a fork continues from, by the call after which it does: the last one of the step. A
 * step of an earlier run counts only if no later run has made it again.
 */
export function forkPoints(steps: TimelineStep[], usable: number[]): ReadonlyMap<string, number> {
  const last = new Map<number, TimelineStep>();
  for (const each of steps) {
    if (each.kind === 'approval' || each.step === null || !usable.includes(each.step)) continue;
    if (each.run >= (last.get(each.step)?.run ?? 0)) last.set(each.step, each);
  }
  return new Map([...last].map(([number, each]) => [each.id, number]));
}
