import type { AgentDetails, ToolServer } from '@rota/sdk';
import { expect, test } from 'vitest';
import {
  blockedTools,
  centsOf,
  isBudget,
  lengthOf,
  nameOf,
  serversNeeded,
  stopsOf,
  tasksCovered,
} from './draft';
import { draftFor } from './useDraft';

test('a name is the first sentence, without marks, cut between words', () => {
  expect(nameOf('')).toBe('');
  expect(nameOf('\n\n## Check the invoices\nAll of them.')).toBe('Check the invoices');
  expect(nameOf('Check the invoices of October. Leave out Marlow Hotels.')).toBe(
    'Check the invoices of October',
  );
  expect(nameOf('See rota.example/tasks for what to do')).toBe(
    'See rota.example/tasks for what to do',
  );
  const long = nameOf(`Go ${'through the customers '.repeat(10)}`);
  expect(lengthOf(long)).toBeLessThanOrEqual(80);
  expect(long).toMatch(/(through|the|customers)…$/);
  expect(lengthOf(nameOf('😀'.repeat(200)))).toBe(80);
});

test('patterns name the servers that an agent needs', () => {
  const servers = [{ name: 'crm' }, { name: 'mail-eu' }] as ToolServer[];
  const needed = serversNeeded(['crm/get_*', 'crm/list_*', 'mail*/send', 'bank/*'], servers);
  expect(needed.map(({ name, tools, connected }) => [name, tools, connected.length])).toEqual([
    ['crm', ['get_*', 'list_*'], 1],
    ['mail*', ['send'], 1],
    ['bank', ['*'], 0],
  ]);
});

test('a task stops at the gates of its quote', () => {
  const approval = { run: false, tools: 'always', output: true } as const;
  const agent = { approval } as AgentDetails;
  expect(stopsOf(agent, ['run', 'output'])).toEqual({
    run: true,
    tools: null,
    output: true,
    atLeast: 2,
  });
  expect(stopsOf(agent, ['tool'])).toEqual({
    run: false,
    tools: 'always',
    output: false,
    atLeast: 0,
  });
});

test('a budget is typed in dollars and sent in cents', () => {
  expect(['', ' ', '0', '-1', 'x', '0.001'].map(centsOf)).toEqual(Array(6).fill(null));
  expect(['0.29', '1', '2.5', '0.1'].map(centsOf)).toEqual([29, 100, 250, 10]);
  expect(['0,50', '$2', '1,000'].map(centsOf)).toEqual([50, 200, 100_000]);
});

test('a budget is an amount or empty', () => {
  expect(['', ' ', '0.5'].map(isBudget)).toEqual(Array(3).fill(true));
  expect(['0', '-5', '0.004', 'x'].map(isBudget)).toEqual(Array(4).fill(false));
});

test('only tools that the agent may use and nobody accepted yet are blocked', () => {
  const tool = (name: string, changes = 0) =>
    ({ name, difference: Array(changes).fill({}) }) as Parameters<typeof blockedTools>[1][number];
  const tools = [tool('get_ticket'), tool('get_tags', 2), tool('set_tags', 1)];
  expect(blockedTools({ tools: ['get_*'] }, tools)).toEqual({ usable: 2, blocked: 1 });
  expect(blockedTools({ tools: ['*'] }, tools)).toEqual({ usable: 3, blocked: 2 });
  expect(blockedTools({ tools: ['get_ticket'] }, tools)).toEqual({ usable: 1, blocked: 0 });
});

test('a text stays until its task is created, and a link with another text begins anew', () => {
  const fresh = draftFor(null, 'From a link.');
  expect(fresh.text).toBe('From a link.');
  const typed = { ...fresh, text: 'Typed after that.' };
  expect(draftFor(typed, 'From a link.')).toBe(typed);
  expect(draftFor(typed, '')).toBe(typed);
  expect(draftFor(typed, 'Another.').text).toBe('Another.');
});

test('a balance covers whole tasks only', () => {
  expect(tasksCovered('1.20', 40)).toBe(3);
  expect(tasksCovered('1.199999', 40)).toBe(2);
  expect(tasksCovered('0.00', 40)).toBe(0);
});
