import { forkOptions, type TimelineStep } from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { ok } from '../api/client';
import { keys } from '../api/keys';

/** How a task can be forked. */
export const forkQuery = (id: string) =>
  queryOptions({
    queryKey: [...keys.task(id), 'fork'],
    queryFn: () => ok(forkOptions({ path: { id }, throwOnError: true })),
  });

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
