import { expect, test } from 'vitest';
import { typesOf } from './types';

test('types are separated by lines, spaces or commas, and none means all', () => {
  expect(typesOf('task.completed\ntask.failed')).toEqual(['task.completed', 'task.failed']);
  expect(typesOf(' task.completed, task.failed ,')).toEqual(['task.completed', 'task.failed']);
  expect(typesOf(' \n ')).toBeNull();
});
