import { expect, test, vi } from 'vitest';
import { errors, Rota, type RotaOptions, StaleReviewError } from '../src/index.ts';
import { answer, refusal, stream, stub } from './stub.ts';

test.each(Object.entries(errors.BY_CODE))('%s has its class', (code, kind) => {
  const body = { code, message: 'What to do.', details: { a: 1 } };
  const error = errors.apiError(body, { status: kind.usualStatus, requestId: 'r1' });
  expect(error.constructor).toBe(kind);
  expect(error).toBeInstanceOf(errors.APIError);
  expect(error).toMatchObject({ ...body, status: kind.usualStatus, requestId: 'r1' });
  expect(error.name).toBe(kind.name);
});

test.each([
  [400, errors.ValidationError],
  [402, errors.PaymentRequiredError],
  [418, errors.APIError],
  [429, errors.RateLimitError],
  [599, errors.InternalServerError],
] as const)('an unknown code with %i has the class of its status', (status, kind) => {
  const error = errors.apiError({ code: 'constructor', message: 'New.' }, { status });
  expect(error.constructor).toBe(kind);
  expect(error.code).toBe('constructor');
});

test('a conflict about another review has that review', () => {
  const review = { number: 2 };
  const error = errors.apiError({ code: 'CONFLICT', message: 'No.', details: { review } });
  expect(error).toBeInstanceOf(StaleReviewError);
  expect((error as StaleReviewError).review).toBe(review);
});

test('a response of something else than Rota says so', async () => {
  const { client } = stub(
    new Response('<html>Bad gateway</html>', { status: 502 }),
    new Response('<html>', { status: 200 }),
    new Response(null, { status: 302, headers: { Location: 'https://y' } }),
  );
  const rota = client({ maxRetries: 0 });
  await expect(rota.me()).rejects.toThrow('not from Rota: <html>Bad gateway');
  await expect(rota.me()).rejects.toThrow(errors.UnreadableResponseError);
  await expect(rota.me()).rejects.toThrow('redirects to https://y.');
});

test('an error has everything that the response says', async () => {
  const { client } = stub(
    refusal(429, 'RATE_LIMIT_EXCEEDED', { 'X-Request-Id': 'r7', 'RateLimit-Reset': '12' }),
  );
  await expect(client({ maxRetries: 0 }).me()).rejects.toMatchObject({
    status: 429,
    code: 'RATE_LIMIT_EXCEEDED',
    requestId: 'r7',
    retryAfterS: 12,
  });
});

test('a missing key says how to give one', async () => {
  const refused = () => refusal(401, 'AUTHENTICATION_ERROR', { 'X-Request-Id': 'r1' });
  const { client } = stub(refused(), refused());
  await expect(client().me()).rejects.toMatchObject({
    message: 'The API key is missing. Pass apiKey, or set ROTA_API_KEY.',
    code: 'AUTHENTICATION_ERROR',
    requestId: 'r1',
  });
  await expect(client({ apiKey: 'rota_x' }).me()).rejects.toThrow('No.');
});

test('a missing URL says how to give one', () => {
  expect(() => new Rota({ apiKey: 'rota_x' })).toThrow('ROTA_BASE_URL');
  // An empty variable is one that is not set.
  vi.stubEnv('ROTA_URL', '');
  expect(() => new Rota({ apiKey: 'rota_x' })).toThrow('set ROTA_BASE_URL');
  vi.unstubAllEnvs();
});

test.each([
  [{ baseUrl: 'localhost:8080' }, 'start with https://'],
  [{ baseUrl: '' }, 'start with https://'],
  [{ baseUrl: 'user:secret@x' }, 'start with https://'],
  [{ baseUrl: 'http://' }, 'no password, query or fragment'],
  [{ baseUrl: 'http://user:sec/ret@x' }, 'no password, query or fragment'],
  [{ baseUrl: 'https://user:secret@x/rota' }, 'no password, query or fragment'],
  [{ baseUrl: 'https:////user:secret@x' }, 'no password, query or fragment'],
  [{ baseUrl: 'https://x/?token=secret' }, 'no password, query or fragment'],
  [{ baseUrl: 'https://x/#secret' }, 'no password, query or fragment'],
  [{ account: 'secret\n' }, 'account is empty or has'],
  [{ account: 'secret\r\nX: y' }, 'account is empty or has'],
  [{ apiVersion: 'secret…' }, 'apiVersion is empty or has'],
  [{ apiKey: 'rota_secret\n' }, 'apiKey is empty or has'],
  [{ apiKey: 'rota_sécret' }, 'an invalid character'],
  [{ maxRetries: -1 }, 'cannot be negative'],
])('a wrong option is refused at once and a key is never shown: %o', (options, reason) => {
  const make = () => new Rota({ baseUrl: 'http://x', ...options });
  expect(make).toThrow(reason);
  expect(make).not.toThrow(/s[eé]c/);
});

test('an idempotency key that cannot be sent is refused before the first attempt', async () => {
  const { client, sent } = stub();
  for (const idempotencyKey of ['', ' ', 'a\nb', 'a ', 'é']) {
    const call = client().tasks.create({ name: 'T' }, { idempotencyKey });
    await expect(call).rejects.toThrow(TypeError);
  }
  expect(sent).toHaveLength(0);
});

test('a page without TLS makes keys too', async () => {
  const { getRandomValues } = crypto;
  vi.stubGlobal('crypto', { getRandomValues: getRandomValues.bind(crypto) });
  try {
    const { client, sent } = stub(answer({ task: {} }), answer({ task: {} }));
    for (const name of ['A', 'B']) await client().tasks.create({ name });
    const keys = sent.map(({ init }) => init.headers['Idempotency-Key'] ?? '');
    expect(new Set(keys).size).toBe(2);
    for (const key of keys) expect(key).toMatch(/^\d+-\d+-\d+-\d+$/);
  } finally {
    vi.unstubAllGlobals();
  }
});

test('other options keep what is not given, and null clears it', async () => {
  vi.stubEnv('ROTA_API_KEY', 'rota_environment');
  try {
    const { client, sent } = stub(answer({}), answer({}), answer({}), answer({}));
    const rota = client({ apiKey: 'rota_x', account: 'company' });
    await rota.withOptions({ apiKey: undefined, account: undefined, maxRetries: undefined }).me();
    await rota.withOptions({ account: null, maxRetries: null, timeoutMs: null }).me();
    const without = rota.withOptions({ apiKey: null });
    await without.me();
    await without.withOptions({ account: 'personal' }).me();
    const headers = sent.map(({ init }) => init.headers);
    expect(headers.map((each) => each['X-Service-Account'])).toEqual([
      ...['company', undefined],
      ...['company', 'personal'],
    ]);
    expect(headers.map((each) => each.Authorization)).toEqual([
      ...['Bearer rota_x', 'Bearer rota_x'],
      ...[undefined, undefined],
    ]);
  } finally {
    vi.unstubAllEnvs();
  }
});

/** Reads numbers as texts, so that none is rounded. */
const json = {
  parse: (text: string) => JSON.parse(text.replace(/:\s*(\d{16,})/g, ':"$1"')) as unknown,
  stringify: (value: unknown) => JSON.stringify(value),
};
const BIG = '12345678901234567890';

test('errors and events are read as the caller says', async () => {
  const review = `{"error":{"code":"CONFLICT","message":"No.","details":{"review":{"number":${BIG}}}}}`;
  const { client } = stub(
    new Response(review, { status: 409 }),
    stream([`id: 1\ndata: {"sequence":1,"data":{"status":"COMPLETED","n":${BIG}}}\n\n`]),
  );
  const rota = client({ json });
  const decision = rota.tasks.approve('t', { review: { number: 1, digest: 'd' } });
  await expect(decision).rejects.toMatchObject({ review: { number: BIG } });
  for await (const event of rota.tasks.follow('t')) {
    expect(event).toMatchObject({ sequence: 1, data: { n: BIG } });
  }
  expect.assertions(2);
});

test('the key is sent and never printed', async () => {
  const { inspect } = await import('node:util');
  const { client, sent } = stub(answer({}));
  const rota = client({ apiKey: 'rota_secret', account: 'company', apiVersion: '2026-11-15' });
  await rota.me();
  expect(sent[0]?.init.headers).toMatchObject({
    Authorization: 'Bearer rota_secret',
    'X-Service-Account': 'company',
    'Api-Version': '2026-11-15',
  });
  expect(inspect(rota, { depth: 9, showHidden: true })).not.toContain('rota_secret');
  expect(JSON.stringify(rota)).not.toContain('rota_secret');
});

test('an ID cannot lead to another path', async () => {
  const { client, sent } = stub(refusal(404, 'NOT_FOUND'));
  const rota = client();
  await expect(rota.tasks.get('../me')).rejects.toThrow(errors.NotFoundError);
  expect(sent[0]?.url).toBe('http://x/api/tasks/..%2Fme');
  await expect(rota.tasks.get('..')).rejects.toThrow(TypeError);
  await expect(rota.tasks.get('')).rejects.toThrow('empty');
});

test('the URL and the account of the environment are those of the command line', async () => {
  vi.stubEnv('ROTA_URL', 'http://environment');
  vi.stubEnv('ROTA_ACCOUNT', 'acct_environment');
  const { client, sent } = stub(...[1, 2, 3, 4].map(() => answer({ user: {} })));
  const make = (options: RotaOptions) => client({ baseUrl: undefined, ...options });
  await make({}).me();
  await make({ account: 'company' }).me();
  // The account of the environment belongs to the key of the environment.
  await make({ apiKey: 'rota_x' }).me();
  vi.stubEnv('ROTA_BASE_URL', 'http://own');
  await make({}).withOptions({ apiKey: null }).me();
  const accounts = sent.map(({ init }) => init.headers['X-Service-Account']);
  expect(accounts.slice(0, 3)).toEqual(['acct_environment', 'company', undefined]);
  expect(sent.map(({ url }) => new URL(url).host)).toEqual([
    ...['environment', 'environment', 'environment', 'own'],
  ]);
  vi.unstubAllEnvs();
});
