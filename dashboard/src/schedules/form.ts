/** What a person enters about a schedule, and the requests that it becomes. */
import type { CreateSchedule, Overlap, PatchSchedule, Schedule } from '@rota/sdk';

export interface ScheduleForm {
  name: string;
  agent: string;
  work: string;
  cron: string;
  timeZone: string;
  overlap: Overlap;
}

export const emptyForm = (): ScheduleForm => ({
  name: '',
  agent: '',
  work: '',
  cron: '0 9 * * *',
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  overlap: 'skip',
});

export const formOf = (schedule: Schedule): ScheduleForm => ({
  name: schedule.name,
  agent: schedule.task.agent ?? schedule.task.assignedAgent ?? '',
  work: schedule.task.input ?? '',
  cron: schedule.cron,
  timeZone: schedule.timeZone,
  overlap: schedule.overlap ?? 'skip',
});

export const isReady = (form: ScheduleForm): boolean =>
  [form.name, form.work, form.cron, form.timeZone].every((text) => text.trim() !== '') &&
  form.agent !== '';

const times = (form: ScheduleForm) => ({
  name: form.name.trim(),
  cron: form.cron.trim(),
  timeZone: form.timeZone.trim(),
  overlap: form.overlap,
});

export const createBody = (form: ScheduleForm): CreateSchedule => ({
  ...times(form),
  task: { name: form.name.trim(), agent: form.agent, input: form.work },
});

/**
 * Only what differs from the schedule as it was opened. The task is sent whole: of `task`, as it is
 * now, only the agent and the text can be edited here.
 */
export function patchBody(
  opened: Schedule,
  form: ScheduleForm,
  task: Schedule['task'],
): PatchSchedule {
  const before = formOf(opened);
  const was: Record<string, string> = times(before);
  const agent = form.agent !== before.agent && { agent: form.agent, assignedAgent: null };
  const work = form.work !== before.work && { input: form.work };
  return {
    ...Object.fromEntries(Object.entries(times(form)).filter(([name, now]) => now !== was[name])),
    ...((agent || work) && { task: { ...task, ...agent, ...work } }),
  };
}

/** A moment as the clocks in a time zone show it: "Mon, 16 Nov 2026, 09:00". */
export function inZone(iso: string, timeZone: string): string {
  return new Date(iso).toLocaleString(undefined, {
    timeZone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
  });
}
