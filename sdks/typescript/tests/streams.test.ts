import { expect, test, vi } from 'vitest';
import { errors, type TaskEvent } from '../src/index.ts';
import { answer, cut, eventText, type Outcome, refusal, settled, stream, stub } from './stub.ts';

const first = eventText(1, 'task.created', { status: 'RUNNING' });
const second = eventText(2, 'task.updated', {});
const last = eventText(3, 'task.completed', { status: 'COMPLETED' });
const running = () => answer({ task: { status: 'RUNNING' } });

async function all(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
}

/** A stream that sends this and stays open until it is aborted. */
function open(text: string): (signal: AbortSignal) => Response {
  return (signal) =>
    new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(text));
          signal.addEventListener('abort', () => controller.error(signal.reason));
        },
      }),
      { headers: { 'Content-Type': 'text/event-stream' } },
    );
}

const sequences = (events: TaskEvent[]) =>
  events.map((event) => ('sequence' in event ? event.sequence : event.text));

test.each<[string, Outcome[]]>([
  ['in one connection', [stream([first, second, last])]],
  ['in pieces', [stream([...`${first}${second}${last}`])]],
  ['after a cut', [stream([first, second.slice(0, 9)], 'break'), stream([second, last])]],
  ['after cuts', [stream([], 'break'), cut(), stream([first, second]), running(), stream([last])]],
  ['with repetitions', [stream([first, second], 'break'), stream([first, second, last])]],
  ['after a refusal', [stream([first, second], 'break'), refusal(503, 'X'), stream([last])]],
])('every event arrives once and in order, %s', async (_, outcomes) => {
  const { client } = stub(...outcomes);
  expect(sequences(await all(client().tasks.follow('task_1')))).toEqual([1, 2, 3]);
});

test('a stream continues after the last event', async () => {
  const { client, sent } = stub(stream([second], 'break'), stream([last]));
  const events = client().tasks.follow('task_1', { after: 1 });
  await all(events);
  expect(sent.map(({ init }) => init.headers['Last-Event-ID'])).toEqual(['1', '2']);
  expect(sent[0]?.init.headers.Accept).toBe('text/event-stream');
  expect(events.lastSequence).toBe(3);
});

test('texts come between the events', async () => {
  const text = (event: string, text: string) =>
    `event: ${event}\ndata: ${JSON.stringify({ run: 1, step: 1, text })}\n\n`;
  const { client } = stub(
    stream([first, text('delta', 'Ha'), text('text', 'Hallo'), 'event: new\ndata: 1\n\n', last]),
  );
  const events = await all(client().tasks.follow('task_1'));
  expect(sequences(events)).toEqual([1, 'Ha', 'Hallo', 3]);
  expect(events.map(({ type }) => type).slice(1, 3)).toEqual(['delta', 'text']);
});

test('a task that has ended is followed to its end, also after the last event', async () => {
  const ended = answer({ task: { status: 'COMPLETED' } });
  const { client } = stub(stream([]), ended, stream([]));
  expect(await all(client().tasks.follow('task_1', { after: 3 }))).toEqual([]);
});

test('an account stream begins after the newest event', async () => {
  const { client, sent } = stub(
    answer({ events: [], lastSequence: 1 }),
    stream([second], 'break'),
    stream([last]),
  );
  const found = [];
  for await (const event of client().events.follow({ type: ['task.updated'] })) {
    found.push(event.sequence);
    if (found.length === 2) break;
  }
  expect(found).toEqual([2, 3]);
  expect(sent.map(({ init }) => init.headers['Last-Event-ID'])).toEqual([undefined, '1', '2']);
  expect(sent[1]?.url).toBe('http://x/api/events?type=task.updated');
});

test('a stream that must not connect again ends with its connection', async () => {
  const { client } = stub(stream([first]), stream([first], 'break'));
  const rota = client();
  let opened = 0;
  const options = { reconnect: false, onOpen: () => (opened += 1) };
  expect(sequences(await all(rota.tasks.follow('t', options)))).toEqual([1]);
  await expect(all(rota.tasks.follow('t', options))).rejects.toThrow(errors.APIConnectionError);
  expect(opened).toBe(2);
});

test('a stream that waits for long survives any number of cuts', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const cuts = Array.from({ length: 50 }, () => stream([': open\n\n'], 'break'));
    const { client } = stub(...cuts, stream([': open\n\nid: 7\n\n', last]));
    let done = false;
    const found = all(client().tasks.follow('t')).finally(() => {
      done = true;
    });
    while (!done) await vi.advanceTimersByTimeAsync(1_000);
    expect(sequences(await found)).toEqual([3]);
  } finally {
    vi.useRealTimers();
  }
});

test('a stream that is not of Rota is an error', async () => {
  const { client } = stub(answer({}), stream(['id: 1\ndata: {}\n\n']));
  const rota = client();
  for (let time = 0; time < 2; time += 1) {
    await expect(all(rota.tasks.follow('t'))).rejects.toThrow(errors.UnreadableResponseError);
  }
});

test('a client that repeats nothing gives up at once, and a refusal is no outage', async () => {
  const { client, sent } = stub(cut());
  await expect(all(client({ maxRetries: 0 }).tasks.follow('t'))).rejects.toThrow(
    errors.APIConnectionError,
  );
  expect(sent).toHaveLength(1);
  const missing = stub(refusal(404, 'NOT_FOUND'));
  await expect(all(missing.client().tasks.follow('t'))).rejects.toThrow(errors.NotFoundError);
});

test('an outage of a minute is survived from the start, and a longer one is an error', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const outage = (count: number) =>
      Array.from({ length: count }, (_, number) =>
        number % 2 ? refusal(503, 'SERVICE_UNAVAILABLE') : cut('ECONNREFUSED'),
      );
    const short = stub(...outage(12), stream([first, last]));
    expect(sequences(await settled(all(short.client().tasks.follow('t'))))).toEqual([1, 3]);
    const before = performance.now();
    const long = stub(...outage(30));
    await expect(settled(all(long.client().tasks.follow('t')))).rejects.toThrow(errors.RotaError);
    expect(performance.now() - before).toBeGreaterThan(60_000);
    expect(long.sent).toHaveLength(21);
    const account = stub(...outage(12), answer({ events: [], lastSequence: 1 }), stream([last]));
    const events = account.client().events.follow()[Symbol.asyncIterator]();
    expect((await settled(events.next())).value).toMatchObject({ sequence: 3 });
    // Too many streams at once.
    const full = stub(...[1, 2, 3].map(() => refusal(429, 'RATE_LIMITED')));
    await expect(settled(all(full.client().tasks.follow('t')))).rejects.toThrow(
      errors.TooManyAtOnceError,
    );
  } finally {
    vi.useRealTimers();
  }
});

test('waiting for a task survives an outage, and ends in time', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const outage = Array.from({ length: 12 }, () => cut('ECONNREFUSED'));
    const ended = answer({ task: { status: 'COMPLETED' } });
    const short = stub(running(), ...outage, ended);
    expect((await settled(short.client().tasks.wait('t'))).status).toBe('COMPLETED');
    const missing = stub(refusal(404, 'NOT_FOUND'));
    await expect(missing.client().tasks.wait('t')).rejects.toThrow(errors.NotFoundError);
    const before = performance.now();
    const silent = stub(running(), 'never').client();
    const error = await settled(silent.tasks.wait('t', { timeoutMs: 3_000 }).catch((each) => each));
    expect(error).toBeInstanceOf(errors.WaitTimeoutError);
    expect(error.message).toContain('is RUNNING after 3000 ms');
    expect(performance.now() - before).toBeLessThan(5_000);
  } finally {
    vi.useRealTimers();
  }
});

test('an account stream begins when it is ready', async () => {
  const begun = () => answer({ events: [], lastSequence: 1 });
  const { client, sent } = stub(begun(), stream([second]));
  const events = client().events.follow();
  await Promise.all([events.ready(), events.ready()]);
  expect(sent).toHaveLength(1);
  expect(events.lastSequence).toBe(1);
  for await (const { sequence } of events) {
    expect(sequence).toBe(2);
    break;
  }
  expect(sent[1]?.init.headers['Last-Event-ID']).toBe('1');
});

test.each([undefined, 4])('the stream of a company stays with it, after %s', async (after) => {
  const me = answer({ account: { id: 'acct_1' } });
  const begun = answer({ events: [], lastSequence: 4 });
  const events = [5, 6].map((number) => stream([eventText(number, 'task.updated')], 'break'));
  const { client, sent } = stub(me, ...(after ? [] : [begun]), ...events);
  const found = [];
  for await (const { sequence } of client({ account: 'company' }).events.follow({ after })) {
    found.push(sequence);
    if (sequence === 6) break;
  }
  expect(found).toEqual([5, 6]);
  const [asked, ...connected] = sent.map(({ init }) => init.headers['X-Service-Account']);
  expect(asked).toBe('company');
  expect(new Set(connected)).toEqual(new Set(['acct_1']));
});

test('a slow caller does not end the stream, and silence does', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const { client, sent } = stub(open(first), stream([last]));
    const events = client().tasks.follow('t')[Symbol.asyncIterator]();
    await events.next();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(sent[0]?.init.signal?.aborted).toBe(false);
    const next = events.next();
    await vi.advanceTimersByTimeAsync(41_000);
    expect(sent[0]?.init.signal?.aborted).toBe(true);
    expect((await settled(next)).value).toMatchObject({ sequence: 3 });
  } finally {
    vi.useRealTimers();
  }
});

test.each<[string, Outcome, boolean]>([
  ['a cut', cut(), true],
  ['advice', refusal(503, 'SERVICE_UNAVAILABLE', { 'Retry-After': '0' }), false],
])('a network that is back ends only a wait of the client: %s', async (_, failure, ends) => {
  const heard: string[] = [];
  vi.stubGlobal('addEventListener', (name: string) => heard.push(name));
  vi.stubGlobal('removeEventListener', () => undefined);
  try {
    const { client } = stub(failure, stream([last]));
    await all(client().tasks.follow('t'));
    expect(heard.includes('online')).toBe(ends);
  } finally {
    vi.unstubAllGlobals();
  }
});

test('an error in onOpen ends the stream', async () => {
  const { client, sent } = stub(stream([first, last]));
  const onOpen = () => {
    throw new TypeError('mine');
  };
  await expect(all(client().tasks.follow('t', { onOpen }))).rejects.toThrow('mine');
  expect(sent).toHaveLength(1);
  expect(sent[0]?.init.signal?.aborted).toBe(true);
});

test('a task that starts again is followed on', async () => {
  const ended = () => answer({ task: { status: 'FAILED' } });
  const retried = eventText(4, 'task.retried', { status: 'RUNNING' });
  // It had ended, and a retry came before the last look at its events.
  const { client } = stub(
    stream([]),
    ended(),
    stream([retried]),
    running(),
    stream([eventText(5, 'task.completed', { status: 'COMPLETED' })]),
  );
  expect(sequences(await all(client().tasks.follow('t', { after: 3 })))).toEqual([4, 5]);
});

test('leaving the loop or aborting closes the connection', async () => {
  for (const way of ['leave', 'abort'] as const) {
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(first));
      },
      cancel() {
        cancelled = true;
      },
    });
    const { client, sent } = stub(
      new Response(endless, { headers: { 'Content-Type': 'text/event-stream' } }),
    );
    const stop = new AbortController();
    for await (const _ of client().tasks.follow('t', { signal: stop.signal })) {
      if (way === 'leave') break;
      // What `fetch` does with the body.
      sent[0]?.init.signal?.addEventListener('abort', () => endless.cancel().catch(() => {}));
      setTimeout(() => stop.abort(), 1);
      break;
    }
    expect(sent[0]?.init.signal?.aborted).toBe(true);
    await new Promise((done) => setTimeout(done, 5));
    expect(cancelled).toBe(true);
  }
});
