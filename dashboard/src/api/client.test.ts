import { afterEach, expect, test, vi } from 'vitest';
import { queryClient } from './cache';
import {
  api,
  exactApi,
  fieldProblem,
  selectAccount,
  Unanswered,
  unanswered,
  whenSessionEnds,
} from './client';
import { stringifyExact } from './exact';

afterEach(() => vi.restoreAllMocks());

test('without a network, what a person does fails at once and is not sent later', async () => {
  vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  globalThis.dispatchEvent(new Event('offline'));
  const send = vi.fn(() => Promise.reject(unanswered('POST', false)));
  const action = queryClient
    .getMutationCache()
    .build(queryClient, queryClient.defaultMutationOptions({ mutationFn: send }));
  await expect(action.execute(undefined)).rejects.toBeInstanceOf(Unanswered);
  globalThis.dispatchEvent(new Event('online'));
  await queryClient.resumePausedMutations();
  expect(send).toHaveBeenCalledTimes(1);
});

test('the error says whether anything was sent', () => {
  expect(unanswered('GET', true).message).toBe('No connection to the service.');
  expect(unanswered('POST', false).message).toBe('Not sent: no connection. Nothing was changed.');
  expect(unanswered('POST', true).message).toContain('Check whether your change was made');
});

const answers = (...responses: Response[]) => {
  const fetched = vi.spyOn(globalThis, 'fetch');
  for (const response of responses) fetched.mockResolvedValueOnce(response);
  return fetched;
};

test('a request names the account, and numbers that a person decides about keep every digit', async () => {
  const body = '{"review":{"items":[{"arguments":{"amount":12345678901234567890}}]}}';
  const fetched = answers(new Response('{}'), new Response(body));
  selectAccount('acct_1');
  await api.me();
  expect(fetched.mock.calls[0]).toMatchObject([
    '/api/me',
    { method: 'GET', headers: { 'X-Service-Account': 'acct_1' } },
  ]);
  const review = await exactApi.tasks.review('task_1');
  expect(stringifyExact(review)).toContain('12345678901234567890');
  selectAccount(null);
});

test('an answer of something else than the service is not shown', async () => {
  answers(new Response('<html>', { status: 502, headers: { 'X-Request-Id': 'r1' } }));
  await expect(api.me()).rejects.toMatchObject({
    message: 'The service did not return a valid response. Try again in a moment.',
    status: 502,
    requestId: 'r1',
  });
});

test('an error of the service has its message and its fields, and is not sent again', async () => {
  const details = [{ field: 'name', message: 'is too long' }];
  const error = { code: 'VALIDATION_ERROR', message: 'Not valid.', details };
  const headers = { 'Content-Type': 'application/json' };
  const fetched = answers(new Response(JSON.stringify({ error }), { status: 400, headers }));
  const refused = await api.tasks.create({ name: 'T' }).catch((each: unknown) => each);
  expect(fieldProblem(refused, 'name')).toBe('is too long');
  expect(fieldProblem(refused, 'input')).toBeUndefined();
  expect(fetched).toHaveBeenCalledTimes(1);
});

const json = (body: unknown, status = 200) =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
const refused = (status: number, code: string) =>
  json({ error: { code, message: 'No.', details: null } }, status);
const expired = () => refused(401, 'AUTHENTICATION_FAILED');

/** Answers by path, and the paths that were asked for. */
function service(answer: (path: string, times: number) => Response): string[] {
  const asked: string[] = [];
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input) => {
    asked.push(String(input));
    return answer(String(input), asked.filter((path) => path === input).length);
  });
  return asked;
}

test('an expired token is renewed once for all requests, and they are sent again', async () => {
  const asked = service((path, times) => {
    if (path === '/api/auth/refresh') return json({ token: null });
    return times === 1 ? expired() : json({ task: { id: 'task_1' } });
  });
  const [, task] = await Promise.all([api.me(), api.tasks.create({ name: 'T' })]);
  expect(task.id).toBe('task_1');
  expect(asked.sort()).toEqual([
    '/api/auth/refresh',
    '/api/me',
    '/api/me',
    '/api/tasks',
    '/api/tasks',
  ]);
  expect(localStorage.getItem('rota.renewed')).not.toBeNull();
});

test('a session that has ended is noticed, one that cannot be renewed at the moment is not', async () => {
  const ended = vi.fn();
  whenSessionEnds(ended);
  service((path) =>
    path === '/api/auth/refresh' ? refused(503, 'SERVICE_UNAVAILABLE') : expired(),
  );
  await expect(api.me()).rejects.toMatchObject({ status: 503 });
  expect(ended).not.toHaveBeenCalled();
  vi.restoreAllMocks();
  service(expired);
  await expect(Promise.all([api.me(), api.credits.balance()])).rejects.toMatchObject({
    status: 401,
  });
  expect(ended).toHaveBeenCalledTimes(1);
  // A code that is refused is not about a session.
  await expect(
    api.auth.startSessionByCode({ code: 'x', codeVerifier: 'y', redirectUri: '/', issuer: 'z' }),
  ).rejects.toMatchObject({ status: 401 });
  expect(ended).toHaveBeenCalledTimes(1);
  whenSessionEnds(undefined);
});
