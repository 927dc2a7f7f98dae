import { APIError, errors } from '@rota/sdk';
import { expect, test, vi } from 'vitest';
import { unanswered } from '../api/client';
import { keepBatch, keptBatch, tasksOf } from './keptBatch';
import { readBatch, writeBatch } from './lines';
import { givenUp, type Outcome, type Outcomes, partsOf, type Sender, sendParts } from './send';
import { parseTable, writeTable } from './table';
import type { Sent } from './useBatch';

const cells = (text: string, delimiter = ',') =>
  parseTable(text, delimiter).map((row) => row.cells);

test('cells in quotes contain delimiters, quotes and lines', () => {
  expect(cells('a,"b, ""c""\r\nd",e\r\n')).toEqual([['a', 'b, "c"\r\nd', 'e']]);
  expect(cells('a\t"b\tc"\n"",d', '\t')).toEqual([['a', 'b\tc'], [',d']]);
  expect(cells('5" pipe,x')).toEqual([['5" pipe', 'x']]);
  expect(cells('a,,\n')).toEqual([['a', '', '']]);
});

test('rows keep the number of their line, whatever ends it, and empty rows are left out', () => {
  const rows = parseTable('a\r\n\n"b\nc"\r , \rd', ',');
  expect(rows.map(({ line, cells: [first] }) => [line, first])).toEqual([
    [1, 'a'],
    [3, 'b\nc'],
    [6, 'd'],
  ]);
  expect(parseTable('', ',')).toEqual([]);
});

test('a quote that is never closed is reported', () => {
  expect(parseTable('a,b\nc,"d\ne', ',').map(({ unclosed }) => unclosed)).toEqual([false, true]);
});

test('a written table is read as it was', () => {
  const rows = [
    ['a, b', 'say "hi"', ''],
    ['two\nlines', 'x', '"'],
  ];
  expect(cells(writeTable(rows))).toEqual(rows);
});

test('each line is a task, named after its text', () => {
  const { lines, columns } = readBatch('\uFEFF- Check A, then B. Slowly.\r\n\n  Name, please\n***');
  expect(columns).toBeNull();
  expect(lines.map(({ number, task }) => [number, task.name, task.input])).toEqual([
    [1, 'Check A, then B', '- Check A, then B. Slowly.'],
    [3, 'Name, please', 'Name, please'],
    [4, '***', '***'],
  ]);
});

test('a table is known by its header, with commas, tabs or semicolons', () => {
  for (const [text, ignored] of [
    ['\nName,INPUT,priority\nA,"b,c",2', []],
    ['name\tinput\towner\tpriority\nA\tb,c\tMina\t2', ['owner']],
    ['input;name;priority\nb,c;A;2', []],
  ] as const) {
    const batch = readBatch(text);
    expect(batch.lines.map(({ task }) => task)).toEqual([{ name: 'A', input: 'b,c', priority: 2 }]);
    expect(batch.ignored).toEqual(ignored);
  }
  expect(readBatch('input\nCheck A, B and C\n"Two\nlines"').lines.map((l) => l.task.input)).toEqual(
    ['Check A, B and C', 'Two\nlines'],
  );
  expect(readBatch('owner,priority\nMina,2').columns).toBeNull();
});

test('problems stand at their line', () => {
  const table = [
    'name,input,description,priority',
    ',,only this,',
    'A,b,,eleven',
    'A,b,,11',
    `${'n'.repeat(1_001)},b,,`,
    'A,b,c,1,more',
    'A,b\0,,',
    'A,,,0.5',
    'A,"b',
  ].join('\n');
  const found = readBatch(table).lines.map(({ number, problem }) => [number, problem]);
  expect(found).toEqual([
    [2, expect.stringContaining('no name')],
    [3, expect.stringContaining('priority')],
    [4, expect.stringContaining('priority')],
    [5, expect.stringContaining('1,000')],
    [6, expect.stringContaining('more cells')],
    [7, expect.stringContaining('cannot be sent')],
    [8, undefined],
    [9, expect.stringContaining('never closed')],
  ]);
});

test('lines that are put back are read again as they were', () => {
  for (const text of ['Check A\nCheck B', 'input;name\n"a;\n""b""";A\nc;', 'name\nA']) {
    const { lines, columns } = readBatch(text);
    const again = readBatch(writeBatch(lines, columns));
    expect(again.columns).toEqual(columns);
    expect(again.lines.map(({ task }) => task)).toEqual(lines.map(({ task }) => task));
  }
});

const numbered = (tasks: number, input = 'x') =>
  Array.from({ length: tasks }, (_, number) => ({ number, task: { name: `${number}`, input } }));

test('a request has at most 1,000 tasks and 2 MiB', () => {
  expect(partsOf(numbered(2_500)).map(({ tasks }) => tasks.length)).toEqual([1_000, 1_000, 500]);
  const large = partsOf(numbered(100, 'ä'.repeat(50_000)));
  expect(large.flatMap(({ tasks }) => tasks)).toHaveLength(100);
  for (const { tasks } of large) {
    const body = JSON.stringify({ tasks: tasks.map(({ task }) => task) });
    expect(new TextEncoder().encode(body).length).toBeLessThan(2 ** 21);
  }
});

/** A service that remembers what it created under which key. */
function service(answers: (() => void)[] = []) {
  const known = new Map<string, string[]>();
  const seen: Outcome[][] = [];
  const found = new Map<number, Outcome>();
  const waits: number[] = [];
  const sender: Sender = {
    send: async ({ key, tasks }) => {
      const before = answers.shift();
      if (before?.name === 'refuse') before();
      if (!known.has(key))
        known.set(
          key,
          tasks.map(({ task }) => task.name),
        );
      before?.();
      seen.push(tasks.map(({ task }) => ({ kind: 'created', id: `task_${task.name}` })));
      return seen.at(-1) as Outcome[];
    },
    report: (outcomes: Outcomes) => {
      for (const [number, outcome] of outcomes) found.set(number, outcome);
    },
    wait: async (seconds) => {
      waits.push(seconds);
    },
    isStopped: () => false,
  };
  return { sender, found, waits, created: () => [...known.values()].flat() };
}

const lose = () => {
  throw unanswered('POST', true);
};

test('trying again after a lost answer creates nothing twice, and continues with the rest', async () => {
  const { sender, found, created } = service([() => undefined, lose]);
  const parts = partsOf(numbered(2_500));
  await expect(sendParts(parts, sender)).rejects.toBeInstanceOf(APIError);
  expect(found.size).toBe(1_000);
  expect([...givenUp(parts).values()].map(({ kind }) => kind)).toEqual([
    ...Array(1_000).fill('unknown'),
    ...Array(500).fill('unsent'),
  ]);
  await sendParts(parts, sender);
  expect(found.size).toBe(2_500);
  expect(created()).toHaveLength(2_500);
  expect(new Set(created()).size).toBe(2_500);
  expect(parts).toEqual([]);
});

test('lines that the API cannot read do not stop the others', async () => {
  const details = [
    { field: 'tasks.1.name', message: 'must contain a visible character' },
    { field: 'tasks.1.input', message: 'is wrong, too' },
  ];
  const refuse = () => {
    throw new errors.ValidationError('Not valid.', { details });
  };
  const { sender, found, created } = service([refuse]);
  await sendParts(partsOf(numbered(3)), sender);
  expect(created()).toEqual(['0', '2']);
  expect(found.get(1)).toEqual({
    kind: 'refused',
    message: 'The name must contain a visible character.',
  });
  expect(found.get(2)).toEqual({ kind: 'created', id: 'task_2' });
});

test('a rate limit delays the rest and is no failure', async () => {
  const refuse = () => {
    throw new errors.RateLimitError('Too many.', { retryAfterS: 7 });
  };
  const { sender, waits, created } = service([refuse]);
  await sendParts(partsOf(numbered(2)), sender);
  expect(waits).toEqual([7]);
  expect(created()).toEqual(['0', '1']);
});

test('what is refused as a whole or never left is not sent; what may have arrived is unknown', async () => {
  for (const [error, kind] of [
    [unanswered('POST', false), 'unsent'],
    [new errors.PermissionDeniedError('No.'), 'unsent'],
    [new errors.ConflictError('In progress.'), 'unknown'],
    [new errors.InternalServerError('Broken.'), 'unknown'],
  ] as const) {
    const refuse = () => {
      throw error;
    };
    const parts = partsOf(numbered(1));
    await expect(sendParts(parts, service([refuse]).sender)).rejects.toBe(error);
    expect(givenUp(parts).get(0)).toEqual({ kind });
  }
});

test('a batch that the page lost continues with the same keys, and a finished one is forgotten', () => {
  const text = 'name,input\nMonday,Minutes\n,\nTuesday,Minutes';
  const batch = readBatch(text);
  const outcomes = new Map<number, Outcome>([[1, { kind: 'refused', message: 'Empty.' }]]);
  const parts = partsOf(tasksOf(batch, 'scribe').filter(({ number }) => !outcomes.has(number)));
  const idle = { error: null, uncertain: false, waits: false, stops: false };
  const sent: Sent = { agent: 'scribe', text, batch, outcomes, phase: 'sending', ...idle };
  keepBatch('sent', sent, parts);
  const found = keptBatch('sent');
  expect(found?.parts).toEqual(parts.map((part) => ({ ...part, uncertain: true })));
  // Nobody knows whether the first request arrived.
  expect(found?.sent).toEqual({ ...sent, phase: 'failed', uncertain: true });

  for (const number of [0, 2]) outcomes.set(number, { kind: 'created', id: `task_${number}` });
  keepBatch('sent', { ...sent, phase: 'ended' }, []);
  expect(keptBatch('sent')?.sent).toEqual({ ...sent, phase: 'ended' });
  outcomes.set(1, { kind: 'created', id: 'task_1' });
  keepBatch('sent', { ...sent, phase: 'ended' }, []);
  expect(keptBatch('sent')).toBeNull();
});

test('a request without an answer is not sent again when its key may be forgotten', async () => {
  const text = 'Monday\nTuesday';
  const batch = readBatch(text);
  const idle = { error: null, uncertain: false, waits: false, stops: false };
  const sent: Sent = {
    agent: 'scribe',
    text,
    batch,
    outcomes: new Map(),
    phase: 'failed',
    ...idle,
  };
  const [monday, tuesday] = tasksOf(batch, 'scribe').map((task) => partsOf([task]));
  const parts = [...(monday ?? []), ...(tuesday ?? [])];
  const { sender, created } = service([lose]);
  vi.useFakeTimers({ toFake: ['Date'] });
  await expect(sendParts(parts, sender)).rejects.toBeInstanceOf(APIError);
  keepBatch('sent', sent, parts);
  vi.advanceTimersByTime(22 * 3_600_000);
  expect(keptBatch('sent')?.parts).toHaveLength(2);

  vi.advanceTimersByTime(2 * 3_600_000);
  const found = keptBatch('sent');
  expect([found?.sent.phase, found?.parts]).toEqual(['ended', []]);
  expect([...(found?.sent.outcomes ?? [])]).toEqual([
    [0, { kind: 'unknown' }],
    [1, { kind: 'unsent' }],
  ]);
  // The same goes for a page that stayed open.
  await sendParts(parts, sender);
  expect(created()).toEqual(['Monday']);
  expect(parts).toHaveLength(2);
  vi.useRealTimers();
  keepBatch('sent', null, []);
});
