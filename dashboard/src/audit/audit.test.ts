import type { AuditEntry } from '@rota/sdk';
import { expect, test } from 'vitest';
import { toQuery } from './filter';
import { choices, families } from './strings';
import { actionWords, actorWords, once } from './words';

const entry = (change: Partial<AuditEntry>): AuditEntry => ({
  sequence: 1,
  at: '2026-11-16T10:00:00.000Z',
  actor: 'user',
  userId: 'user_1',
  via: 'sess_1',
  action: 'task.created',
  resource: 'task_1',
  address: null,
  requestId: null,
  actorName: null,
  details: {},
  erased: false,
  hash: '00',
  ...change,
});

test('a range of days covers the whole last day', () => {
  const { from, to } = toQuery({ from: '2026-11-16', to: '2026-11-16' });
  expect(from).toBe(new Date(2026, 10, 16).toISOString());
  expect(to).toBe(new Date(2026, 10, 17).toISOString());
});

test('what a URL has in vain is left out', () => {
  const query = toQuery({ from: 'yesterday', actor: 'constructor', action: 'task,key.created' });
  expect(query.from).toBeUndefined();
  expect(query.actor).toBeUndefined();
  expect(query.action).toEqual(['task', 'key.created']);
});

test('actions have words, also those that are new', () => {
  expect(actionWords('mcp.tools_saved')).toBe('Tool server: tools saved');
  expect(actionWords('moon.landed')).toBe('moon: landed');
});

test('every choice is a family with words', () => {
  for (const name of choices.flatMap(({ actions }) => actions.split(','))) {
    expect(families).toHaveProperty(name);
  }
  expect(choices.flatMap(({ actions }) => actions.split(',')).sort()).toEqual(
    Object.keys(families).sort(),
  );
});

test('an actor is named by what is known', () => {
  const nameOf = (id: string) => (id === 'user_1' ? 'Ada' : id);
  expect(actorWords(entry({}), nameOf)).toEqual(['Ada', null]);
  expect(actorWords(entry({ actor: 'key' }), nameOf)).toEqual(['Ada', 'with an API key']);
  expect(actorWords(entry({ userId: null }), nameOf)).toEqual(['Unknown user', null]);
  const operator = entry({ actor: 'operator', userId: null, actorName: 'rota admin by root' });
  expect(actorWords(operator, nameOf)).toEqual(['Operator', 'rota admin by root']);
  expect(actorWords(entry({ actor: 'service', userId: null }), nameOf)).toEqual(['Rota', null]);
});

test('an entry that is on two pages is shown once', () => {
  const [first, second] = [entry({}), entry({ sequence: 2 })];
  expect(once([second, first, first])).toEqual([second, first]);
});
