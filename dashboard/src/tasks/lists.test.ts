import type { Task } from '@rota/sdk';
import { expect, test } from 'vitest';
import { asCurl, asPython } from './requestText';
import { pagesOf, shift, windowOf } from './windowing';

test('only rows near the screen are drawn, also at the ends', () => {
  expect(windowOf(0, 880, 44, 10_000)).toEqual({ first: 0, end: 26 });
  expect(windowOf(44 * 5_000, 880, 44, 10_000)).toEqual({ first: 4_994, end: 5_026 });
  expect(windowOf(44 * 10_000, 880, 44, 3)).toEqual({ first: 2, end: 3 });
  expect(windowOf(0, 880, 44, 0)).toEqual({ first: 0, end: 0 });
});

test('the pages of the rows', () => {
  expect(pagesOf({ first: 0, end: 0 })).toEqual([0]);
  expect(pagesOf({ first: 49, end: 50 })).toEqual([0]);
  expect(pagesOf({ first: 94, end: 126 })).toEqual([1, 2]);
});

test('new tasks on top move the list by as much as they need', () => {
  const ids = ['new', 'a', 'b', 'c'];
  const window = { first: 0, end: 4 };
  expect(shift({ id: 'b', index: 1 }, window, (index) => ids[index])).toBe(1);
  expect(shift({ id: 'gone', index: 1 }, window, (index) => ids[index])).toBe(0);
  expect(shift(null, window, (index) => ids[index])).toBe(0);
});

test('a copied command cannot be broken out of, and hides nothing', () => {
  const task = {
    name: `it's "$(rm -rf /)" \u202Etxt\u3164\u00A0`,
    assignedAgent: 'bug-triager',
    input: 'a\nb',
    description: null,
    priority: 0,
    projectId: null,
    outputSchema: null,
    budgetCents: null,
    deadline: null,
    truncated: [],
  } as unknown as Task;
  const curl = asCurl(task, 'https://rota.example', 'acct_1');
  expect(curl).toContain(`"name": "it'\\''s \\"$(rm -rf /)\\" \\u202etxt\\u3164\\u00a0"`);
  expect(curl).toContain('"input": "a\\nb"');
  expect(asPython(task, 'https://rota.example', 'acct_1')).toContain(
    `"name": "it's \\"$(rm -rf /)\\" \\u202etxt\\u3164\\u00a0",`,
  );
});

test('a copied command has the options that the task was created with', () => {
  const outputSchema = {
    type: 'object',
    properties: { paid: { type: 'boolean', default: true, examples: [null, "it's", 1.5] } },
  };
  const task = {
    name: 'Invoice 7',
    assignedAgent: 'bug-triager',
    input: '',
    description: null,
    priority: 3,
    projectId: null,
    outputSchema,
    budgetCents: 20,
    deadline: '2999-01-31T12:00:00.000Z',
    truncated: [],
  } as unknown as Task;
  const sent = (copied: Task): unknown => {
    const curl = asCurl(copied, 'https://rota.example', 'acct_1');
    const argument = /-d '([\s\S]*)'$/.exec(curl)?.[1] ?? '';
    return JSON.parse(argument.replaceAll(`'\\''`, `'`));
  };
  const name = { name: 'Invoice 7', agent: 'bug-triager', priority: 3, budgetCents: 20 };
  expect(sent(task)).toEqual({ ...name, outputSchema, deadline: task.deadline });
  expect(sent({ ...task, truncated: ['outputSchema'], deadline: '2020-01-01T00:00:00Z' })).toEqual(
    name,
  );
  const python = asPython(task, 'https://rota.example', 'acct_1');
  expect(python).toContain('"budgetCents": 20,');
  expect(python).toContain(`"default": True, "examples": [None, "it's", 1.5]}`);
});
