import { expect, test } from 'vitest';
import { Rota } from '../src/index.ts';

/** A service whose list is what `rows` is at the moment. */
function listing(rows: () => number[]) {
  const asked: string[] = [];
  const send: typeof fetch = async (input) => {
    const url = new URL(String(input));
    asked.push(url.search);
    const offset = Number(url.searchParams.get('offset') ?? 0);
    const limit = Number(url.searchParams.get('limit') ?? 20);
    const now = rows();
    const tasks = now.slice(offset, offset + limit).map((number) => ({ id: `task_${number}` }));
    return new Response(JSON.stringify({ tasks, total: now.length }));
  };
  return { asked, client: new Rota({ baseUrl: 'http://x', fetch: send }) };
}

const numbers = (count: number) => Array.from({ length: count }, (_, number) => number);
const ids = (count: number) => numbers(count).map((number) => `task_${number}`);

test('a list reads its pages when they are needed', async () => {
  const { asked, client } = listing(() => numbers(25));
  const tasks = await client.tasks.list({ status: ['FAILED', 'PENDING'], limit: 10 }).toArray();
  expect(tasks.map(({ id }) => id)).toEqual(ids(25));
  expect(asked).toEqual([
    '?status=FAILED%2CPENDING&limit=10',
    '?status=FAILED%2CPENDING&limit=10&offset=10',
    '?status=FAILED%2CPENDING&limit=10&offset=20',
  ]);
  for await (const _ of client.tasks.list()) break;
  expect(asked).toHaveLength(4);
});

test('a list is complete if its items leave it meanwhile', async () => {
  let rows = numbers(25);
  const { client } = listing(() => rows);
  const seen = [];
  for await (const { id } of client.tasks.list({ limit: 4 })) {
    seen.push(id);
    rows = rows.filter((number) => `task_${number}` !== id);
  }
  expect(seen).toEqual(ids(25));
});

test('a list shows nothing twice if items are added meanwhile', async () => {
  let rows = numbers(9);
  const { client } = listing(() => rows);
  const seen = [];
  for await (const { id } of client.tasks.list({ limit: 3 })) {
    seen.push(id);
    if (rows.length < 15) rows = [100 + rows.length, ...rows];
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen).toEqual(expect.arrayContaining(ids(9)));
});

test('the first page is the whole response', async () => {
  const { client, asked } = listing(() => numbers(25));
  const page = await client.tasks.list({ limit: 5, offset: 10 }).firstPage();
  expect(page.total).toBe(25);
  expect(page.tasks[0]?.id).toBe('task_10');
  expect(asked).toEqual(['?limit=5&offset=10']);
});

test('agents are read by the number of the page, events after the last one', async () => {
  const send: typeof fetch = async (input) => {
    const { pathname, searchParams } = new URL(String(input));
    const of = (name: string) => Number(searchParams.get(name));
    const all = numbers(7);
    if (pathname === '/api/agents') {
      const page = searchParams.has('page') ? of('page') : 1;
      const agents = all.slice((page - 1) * 3, page * 3).map((number) => ({ name: `a${number}` }));
      return new Response(JSON.stringify({ agents, total: 7 }));
    }
    const later = all.map((number) => ({ sequence: number + 1 })).slice(of('after'));
    return new Response(JSON.stringify({ events: later.slice(0, 2), total: later.length }));
  };
  const client = new Rota({ baseUrl: 'http://x', fetch: send });
  expect((await client.agents.list().toArray()).map(({ name }) => name)).toEqual(
    numbers(7).map((number) => `a${number}`),
  );
  expect((await client.events.list({ limit: 2 }).toArray()).map((e) => e.sequence)).toEqual([
    1, 2, 3, 4, 5, 6, 7,
  ]);
});
