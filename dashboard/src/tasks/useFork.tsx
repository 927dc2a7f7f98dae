import type { Task, TimelineStep } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { ForkDialog } from './ForkDialog';
import { forkPoints, forkQuery } from './forks';
import type { StepRow } from './timelineRows';

/** Forks of a task from the rows of its timeline, and the dialog that asks about one. */
export function useFork(task: Task, steps: TimelineStep[] = []) {
  const [fromStep, setFromStep] = useState<number | null>(null);
  const options = useQuery({
    ...forkQuery(task.id),
    // A task that a client runs has no steps.
    enabled: steps.length > 0 && Boolean(task.usage.budgetUsd),
  }).data?.fork;
  const points = forkPoints(steps, options?.steps ?? []);
  const dialog = fromStep !== null && (
    <ForkDialog task={task} fromStep={fromStep} onClose={() => setFromStep(null)} />
  );
  /** What a click at this row does. Undefined where a fork cannot continue. */
  const from = (row: StepRow): (() => void) | undefined => {
    const point = row.depth ? undefined : points.get(row.step.id);
    return point === undefined ? undefined : () => setFromStep(point);
  };
  return { from, dialog };
}
