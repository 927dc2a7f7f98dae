import { expect, test } from 'vitest';
import { answer, stub } from './stub.ts';

test('a task goes with what the list has cut of the schedule', async () => {
  const { sent, client } = stub(...[1, 2, 3, 4].map(() => answer({ schedule: {} })));
  const { schedules } = client();
  const task = { name: 'x' };
  await schedules.update({ id: 's', truncated: ['input'] }, { task });
  await schedules.update({ id: 's', truncated: [] }, { task });
  await schedules.update({ id: 's', truncated: ['input'] }, { name: 'y' });
  await schedules.update('s', { task });
  expect(sent.map((each) => JSON.parse(each.init.body as string))).toEqual([
    { task, truncated: ['input'] },
    { task },
    { name: 'y' },
    { task },
  ]);
});
