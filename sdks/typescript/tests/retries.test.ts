import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { errors, type Rota } from '../src/index.ts';
import { delayMs, LONGEST_WAIT_MS } from '../src/retries.ts';
import { answer, cut, type Outcome, refusal, settled, stub } from './stub.ts';

const TASK = { task: { id: 'task_1' } };
const IN_PROGRESS =
  'A request with this Idempotency-Key is in progress. Wait for it, then try again.';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test.each<[string, Outcome]>([
  ['a rate limit', refusal(429, 'RATE_LIMIT_EXCEEDED', { 'Retry-After': '3' })],
  ['too many at once', refusal(429, 'RATE_LIMITED', { 'RateLimit-Reset': '2' })],
  ['a slow request', refusal(408, 'REQUEST_TIMEOUT')],
  ['an outage', refusal(503, 'SERVICE_UNAVAILABLE')],
  ['a database', refusal(500, 'DATABASE_ERROR')],
  ['a slow request to a proxy', new Response('<html>', { status: 408 })],
  ['a gateway', new Response('<html>', { status: 502 })],
  ['a closed port', cut('ECONNREFUSED')],
  ['a cut', cut()],
  ['a cut in the headers', new Response(null, { status: 201 })],
])('a request that can pass later is sent again: %s', async (_, failure) => {
  const { client, sent } = stub(failure, answer(TASK, 201));
  const task = await settled(client().tasks.create({ name: 'T' }));
  expect(task.id).toBe('task_1');
  const keys = sent.map(({ init }) => init.headers['Idempotency-Key']);
  expect(keys).toHaveLength(2);
  expect(keys[0]).toBe(keys[1]);
});

type Use = (client: Rota) => Promise<unknown>;

test.each<[string, Use, Outcome, new (message: string) => Error]>([
  ['missing', (c) => c.tasks.get('t'), refusal(404, 'NOT_FOUND'), errors.NotFoundError],
  [
    'a conflict',
    (c) => c.tasks.create({ name: 'T' }),
    refusal(409, 'CONFLICT'),
    errors.ConflictError,
  ],
  [
    'a long wait',
    (c) => c.me(),
    refusal(429, 'RATE_LIMITED', { 'Retry-After': '3600' }),
    errors.TooManyAtOnceError,
  ],
  [
    'a tool',
    (c) => c.toolServers.invoke('mcp_1', { tool: 'send' }),
    refusal(502, 'TOOL_SERVER_ERROR'),
    errors.ToolServerError,
  ],
  [
    'a tool in time',
    (c) => c.toolServers.invoke('mcp_1', { tool: 'send' }),
    refusal(504, 'TOOL_SERVER_TIMEOUT'),
    errors.ToolServerTimeoutError,
  ],
  // A line would be appended twice, and an ID token works once.
  ['logs', (c) => c.tasks.update('t', { logs: 'line\n' }), cut(), errors.APIConnectionError],
  ['an ID token', (c) => c.auth.startSession({ idToken: 't' }), cut(), errors.APIConnectionError],
])('a request that must not be repeated is sent once: %s', async (_, use, failure, kind) => {
  const { client, sent } = stub(failure);
  await expect(settled(use(client()))).rejects.toThrow(kind);
  expect(sent).toHaveLength(1);
});

test('a change that never left is sent again', async () => {
  const { client, sent } = stub(cut('ECONNREFUSED'), answer(TASK));
  await settled(client().tasks.update('t', { logs: 'line\n' }));
  expect(sent).toHaveLength(2);
});

test('an attempt that still runs is waited for', async () => {
  const busy = [1, 2, 3].map(() => refusal(409, 'CONFLICT', {}, IN_PROGRESS));
  const { client, sent } = stub(cut(), ...busy, answer(TASK, 201));
  await settled(client({ maxRetries: 1 }).tasks.create({ name: 'T' }));
  expect(sent).toHaveLength(5);
});

test('the request of an earlier process with the same key is waited for', async () => {
  const error = { code: 'CONFLICT', message: '?', details: { reason: 'in_progress' } };
  const busy = () => answer({ error }, 409);
  const keyed: Use = (c) => c.tasks.create({ name: 'T' }, { idempotencyKey: 'k' });
  const { client, sent } = stub(busy(), answer(TASK, 201), busy());
  await settled(keyed(client()));
  expect(sent).toHaveLength(2);
  // A client without retries says at once what it got.
  const call = settled(keyed(client({ maxRetries: 0 })));
  await expect(call).rejects.toMatchObject({ reason: 'in_progress', isInProgress: true });
});

test('an attempt that ran into the timeout is waited for, as long as a request may take', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const busy = (count: number) =>
    Array.from({ length: count }, () => refusal(409, 'CONFLICT', {}, IN_PROGRESS));
  const invoke = ({ client }: ReturnType<typeof stub>) =>
    settled(client({ timeoutMs: 5_000 }).toolServers.invoke('mcp_1', { tool: 'send' }));
  const slow = stub('never', ...busy(3), answer({ result: 1 }));
  expect(await invoke(slow)).toEqual({ result: 1 });
  expect(new Set(slow.sent.map(({ init }) => init.headers['Idempotency-Key'])).size).toBe(1);
  const endless = stub('never', ...busy(30));
  await expect(invoke(endless)).rejects.toThrow(errors.ConflictError);
  expect(endless.sent.length).toBeGreaterThan(5);
});

test('an attempt that still runs is asked for less and less often', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  vi.spyOn(Math, 'random').mockReturnValue(1);
  const busy = Array.from({ length: 200 }, () => refusal(409, 'CONFLICT', {}, IN_PROGRESS));
  const { client, sent } = stub(cut(), ...busy);
  await expect(settled(client().tasks.create({ name: 'T' }))).rejects.toThrow(errors.ConflictError);
  // After 0.5, 1 and 2 s, then every 4 s until the timeout of 60 s has passed.
  expect(sent).toHaveLength(20);
  vi.restoreAllMocks();
});

test.each<[string, Use, Response]>([
  ['a key', (c) => c.keys.delete('k'), refusal(404, 'NOT_FOUND')],
  ['a schedule', (c) => c.schedules.delete('s'), refusal(404, 'NOT_FOUND')],
  ['a session', (c) => c.auth.logout(), refusal(401, 'AUTHENTICATION_ERROR')],
])('what the lost attempt has ended is no error: %s', async (_, use, gone) => {
  for (const lost of [cut(), new Response('<html>', { status: 504 })]) {
    const { client, sent } = stub(lost, gone.clone());
    await expect(settled(use(client()))).resolves.toBeUndefined();
    expect(sent).toHaveLength(2);
  }
  // Nothing was lost, or the answer is not from Rota.
  const { status } = gone;
  for (const outcomes of [
    [gone.clone()],
    [cut('ECONNREFUSED'), gone.clone()],
    [cut(), new Response('<html>', { status })],
  ]) {
    const { client } = stub(...outcomes);
    await expect(settled(use(client()))).rejects.toThrow(errors.RotaError);
  }
});

test('a missing task stays missing after a lost response', async () => {
  const { client } = stub(cut(), refusal(404, 'NOT_FOUND'));
  await expect(settled(client().tasks.get('t'))).rejects.toThrow(errors.NotFoundError);
});

test('Retry-After can be a date', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-15T10:00:00Z') });
  const asked = ['Sun, 15 Nov 2026 10:00:07 GMT', 'Sun, 15 Nov 2026 09:00:00 GMT', '7 apples'];
  const { client } = stub(
    ...asked.map((after) => refusal(503, 'SERVICE_UNAVAILABLE', { 'Retry-After': after })),
  );
  const rota = client({ maxRetries: 0 });
  for (const retryAfterS of [7, 0, null]) {
    await expect(rota.me()).rejects.toMatchObject({ retryAfterS });
  }
});

test('a timeout beyond what timers can do is no timeout', async () => {
  const { client } = stub(answer({ user: {} }));
  const rota = client({ timeoutMs: 2 ** 31 });
  const slow: typeof fetch = async (_, init) => {
    await new Promise((done) => setTimeout(done, 10));
    if (init?.signal?.aborted) throw init.signal.reason;
    return answer({ variant: 'a' });
  };
  await expect(settled(rota.withOptions({ fetch: slow }).me())).resolves.toEqual({ variant: 'a' });
});

test('attempts end with the last error', async () => {
  const down = (n: number) => refusal(503, 'SERVICE_UNAVAILABLE', { 'X-Request-Id': `r${n}` });
  const { client, sent } = stub(down(0), down(1), down(2));
  await expect(settled(client().me())).rejects.toMatchObject({ requestId: 'r2' });
  expect(sent).toHaveLength(3);
});

test.each<[Outcome[], boolean]>([
  [[cut('ECONNREFUSED')], false],
  [[refusal(429, 'RATE_LIMITED'), cut('ECONNREFUSED')], false],
  [[cut(), cut('ECONNREFUSED')], true],
  [[new Response('<html>', { status: 502 }), cut('ECONNREFUSED')], true],
  [[cut('ECONNREFUSED'), cut()], true],
])(
  'the error says whether any attempt was sent, and with which key: %#',
  async (outcomes, wasSent) => {
    const { client, sent } = stub(...outcomes);
    const call = client({ maxRetries: outcomes.length - 1 }).tasks.create({ name: 'T' });
    const error = await settled(call).catch((each: unknown) => each);
    const idempotencyKey = sent[0]?.init.headers['Idempotency-Key'];
    expect(error).toBeInstanceOf(errors.APIConnectionError);
    expect(error).toMatchObject({ wasSent, idempotencyKey });
  },
);

test.each<[Outcome[], boolean]>([
  [[refusal(404, 'NOT_FOUND')], false],
  [[refusal(429, 'RATE_LIMITED')], false],
  [[refusal(503, 'SERVICE_UNAVAILABLE')], true],
  [[new Response('<html>', { headers: { 'Content-Type': 'text/html' } })], true],
  [[refusal(409, 'CONFLICT', {}, IN_PROGRESS)], true],
  [[refusal(409, 'CONFLICT', {}, IN_PROGRESS), cut('ECONNREFUSED'), cut('ECONNREFUSED')], true],
  [[cut(), refusal(429, 'RATE_LIMITED')], true],
])('any error says whether the request may have taken effect: %#', async (outcomes, wasSent) => {
  const { client } = stub(...outcomes);
  const maxRetries = Math.min(1, outcomes.length - 1);
  const call = settled(client({ maxRetries }).tasks.create({ name: 'T' }));
  await expect(call).rejects.toMatchObject({ wasSent });
});

test('every error of a request with a key has it', async () => {
  const { client } = stub(refusal(503, 'SERVICE_UNAVAILABLE'), refusal(404, 'NOT_FOUND'));
  const rota = client({ maxRetries: 0 });
  const create = rota.tasks.create({ name: 'T' }, { idempotencyKey: 'order-17' });
  await expect(create).rejects.toMatchObject({ idempotencyKey: 'order-17' });
  await expect(rota.tasks.get('t')).rejects.toMatchObject({ idempotencyKey: null });
});

test('the service says how long to wait', () => {
  for (const asked of [0, 12, LONGEST_WAIT_MS / 1_000]) {
    const error = new errors.RateLimitError('No.', { retryAfterS: asked });
    const waits = Array.from({ length: 200 }, () => delayMs(error, 0, true) as number);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(asked * 1_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(asked * 1_000 + 500);
    expect(new Set(waits).size).toBeGreaterThan(100);
  }
  const long = new errors.RateLimitError('No.', { retryAfterS: LONGEST_WAIT_MS / 1_000 + 1 });
  expect(delayMs(long, 0, true)).toBeNull();
});

test('waits without advice grow up to a limit', () => {
  const error = new errors.ServiceUnavailableError('No.');
  const longest = Array.from({ length: 9 }, (_, attempt) =>
    Math.max(...Array.from({ length: 200 }, () => delayMs(error, attempt, true) as number)),
  );
  expect(longest[0]).toBeLessThanOrEqual(500);
  expect(longest[1]).toBeGreaterThan(500);
  expect(longest[8]).toBeGreaterThan(4_000);
  expect(longest[8]).toBeLessThanOrEqual(8_000);
});

test('the caller ends a wait', async () => {
  const { client } = stub(refusal(503, 'SERVICE_UNAVAILABLE', { 'Retry-After': '50' }));
  const stop = new AbortController();
  const call = client().me({ signal: stop.signal });
  const ended = expect(call).rejects.toThrow('enough');
  await vi.advanceTimersByTimeAsync(1_000);
  stop.abort(new Error('enough'));
  await ended;
});

test('a response that never comes is a timeout', async () => {
  const never: typeof fetch = (_, init) =>
    new Promise((_, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
    });
  const { client } = stub();
  const call = client({ fetch: never, timeoutMs: 5_000, maxRetries: 1 }).me();
  await expect(settled(call)).rejects.toThrow(errors.APITimeoutError);
});
