import { expect, test, vi } from 'vitest';
import { errors, type TaskEvent } from '../src/index.ts';
import { answer, cut, eventText, type Outcome, refusal, stream, stub } from './stub.ts';

const first = eventText(1, 'task.created', { status: 'RUNNING' });
const second = eventText(2, 'task.updated', {});
const last = eventText(3, 'task.completed', { status: 'COMPLETED' });
const running = () => answer({ task: { status: 'RUNNING' } });

async function all(events: AsyncIterable<TaskEvent>): Promise<TaskEvent[]> {
  const found = [];
  for await (const event of events) found.push(event);
  return found;
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

test('a stream that was never open gives up soon', async () => {
  const { client, sent } = stub(cut(), cut(), cut());
  await expect(all(client({ maxRetries: 1 }).tasks.follow('t'))).rejects.toThrow(
    errors.APIConnectionError,
  );
  expect(sent).toHaveLength(2);
  const missing = stub(refusal(404, 'NOT_FOUND'));
  await expect(all(missing.client().tasks.follow('t'))).rejects.toThrow(errors.NotFoundError);
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
