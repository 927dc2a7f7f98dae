import type { Schedule } from '@rota/sdk';
import { expect, test } from 'vitest';
import { formOf, patchBody } from './form';

const schedule = {
  name: 'Minutes',
  cron: '0 9 * * *',
  timeZone: 'Europe/Berlin',
  overlap: 'skip',
  task: { name: 'Minutes', assignedAgent: 'meeting-scribe', input: 'Write.', priority: 3 },
} as Schedule;
const form = formOf(schedule);
const { task } = schedule;

test('an edited schedule sends only what differs from when it was opened', () => {
  expect(patchBody(schedule, form, task)).toEqual({});
  expect(patchBody(schedule, { ...form, cron: ' 30 7 * * * ' }, task)).toEqual({
    cron: '30 7 * * *',
  });
});

test('of the task, what somebody else has changed meanwhile stays', () => {
  const now = { ...task, input: 'Write more.', priority: 5 };
  expect(patchBody(schedule, { ...form, agent: 'ticket-responder' }, now)).toEqual({
    task: { ...now, agent: 'ticket-responder', assignedAgent: null },
  });
  expect(patchBody(schedule, { ...form, work: 'Write less.' }, now)).toEqual({
    task: { ...now, input: 'Write less.' },
  });
});
