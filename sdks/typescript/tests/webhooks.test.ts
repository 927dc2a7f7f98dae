import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { errors, webhooks } from '../src/index.ts';

const SECRET = `whsec_${Buffer.from('a secret of twenty-four').toString('base64')}`;
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const rawKey = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
const PUBLIC = `whpk_${rawKey.toString('base64')}`;
const BODY = JSON.stringify({
  id: 'evt_01a1dd19761f707a96968f9300f7529d',
  sequence: 42,
  type: 'task.completed',
  taskId: 'task_01a1dd1976357476a72b4a77b701fd77',
  data: { status: 'COMPLETED' },
  createdAt: '2026-11-15T02:46:35.123Z',
  accountId: 'acct_1',
  webhookId: 'wh_1',
});

afterEach(() => {
  vi.restoreAllMocks();
});

function signed(offsetS = 0): Record<string, string> {
  const stamp = String(Math.floor(Date.now() / 1_000) + offsetS);
  const content = `msg_1.${stamp}.${BODY}`;
  const key = Buffer.from(SECRET.slice(6), 'base64');
  const shared = createHmac('sha256', key).update(content).digest('base64');
  const own = sign(null, Buffer.from(content), privateKey).toString('base64');
  return {
    'Webhook-Id': 'msg_1',
    'Webhook-Timestamp': stamp,
    'Webhook-Signature': `v1,${shared} v1a,${own}`,
  };
}

type Answer = {
  status(code: number): Answer;
  send(text: string): void;
  sendStatus(code: number): void;
};
type Handler = (request: object, response: Answer, next: (error: unknown) => void) => unknown;
const expressRoutes: Record<string, (body: Buffer, headers: object) => Promise<number>> = {};

/** What the example uses of Express. `express.raw()` gives the body as a Buffer. */
const express = Object.assign(
  () => ({
    post(path: string, raw: string, handler: Handler) {
      expect(raw).toBe('raw');
      expressRoutes[path] = (body, headers) =>
        new Promise((resolve, reject) => {
          let code = 200;
          const response: Answer = {
            status: (given) => {
              code = given;
              return response;
            },
            send: () => resolve(code),
            sendStatus: resolve,
          };
          // Node has the names of headers in small letters.
          const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
          handler({ body, headers: Object.fromEntries(lower) }, response, reject);
        });
    },
    listen: () => undefined,
  }),
  { raw: () => 'raw' },
);

const keys = [
  { secret: SECRET },
  { secret: ['whsec_AAAA', SECRET] },
  { publicKey: PUBLIC },
  { publicKey: [PUBLIC] },
];

test.each(keys)('a webhook is accepted: %o', async (key) => {
  const options = { webhookId: 'wh_1', ...key };
  const bytes = new TextEncoder().encode(BODY);
  for (const body of [BODY, bytes, bytes.buffer]) {
    const event = await webhooks.verify(body, signed(), options);
    expect(event).toMatchObject({ type: 'task.completed', sequence: 42, accountId: 'acct_1' });
  }
  expect(await webhooks.verify(BODY, new Headers(signed()), options)).toBeTruthy();
});

test.each([
  { secret: '' },
  { secret: 'whsec_' },
  { secret: [SECRET, ''] },
  { secret: [] },
  { publicKey: '' },
  { publicKey: [PUBLIC, 'whpk_'] },
])('an empty key is refused, so that nobody can sign with it: %o', async (key) => {
  const call = webhooks.verify(BODY, signed(), { webhookId: 'wh_1', ...key });
  await expect(call).rejects.toThrow(TypeError);
});

test('the body is read as the caller says', async () => {
  const json = {
    parse: (text: string) => ({ ...(JSON.parse(text) as object), read: text.length }),
  };
  const event = await webhooks.verify(BODY, signed(), { webhookId: 'wh_1', secret: SECRET, json });
  expect(event).toMatchObject({ sequence: 42, read: BODY.length });
});

test('a test of a receiver can sign a webhook', async () => {
  for (const body of [BODY, new TextEncoder().encode(BODY)]) {
    const headers = await webhooks.sign(body, { secret: SECRET });
    const event = await webhooks.verify(body, headers, { webhookId: 'wh_1', secret: SECRET });
    expect(event.sequence).toBe(42);
  }
  const published = await webhooks.sign('{"test": 2432232314}', {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    messageId: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: 1_614_265_330,
  });
  expect(published['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  await expect(webhooks.sign(BODY, { secret: 'whsec_' })).rejects.toThrow(TypeError);
});

test('a published example is accepted', async () => {
  // The signature is the example in the documentation of the scheme.
  vi.spyOn(Date, 'now').mockReturnValue(1_614_265_330_000);
  const headers = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  };
  const options = { webhookId: 'wh_1', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' };
  // The signature passes, and then the body is not an event.
  await expect(webhooks.verify('{"test": 2432232314}', headers, options)).rejects.toThrow(
    'not an event',
  );
});

test.each([
  [`${BODY} `, {}, 'No signature'],
  [BODY, { 'Webhook-Id': 'msg_2' }, 'No signature'],
  [BODY, { 'Webhook-Signature': 'v2,AAAA v1 v1a,!' }, 'No signature'],
  [BODY, { 'Webhook-Signature': '' }, 'No signature'],
  [BODY, { 'Webhook-Timestamp': String(Math.floor(Date.now() / 1_000) + 7) }, 'No signature'],
  [BODY, { 'Webhook-Timestamp': 'soon' }, 'not a number'],
  [BODY, { 'Webhook-Timestamp': '²' }, 'not a number'],
  [BODY, { 'Webhook-Timestamp': '1'.repeat(5_000) }, 'not a number'],
  [BODY, { 'Webhook-Signature': 'v1,ü v1a,é' }, 'No signature'],
])('a changed webhook is refused: %#', async (body, changes, reason) => {
  for (const key of [{ secret: SECRET }, { publicKey: PUBLIC }]) {
    const headers = { ...signed(), ...changes };
    const call = webhooks.verify(body, headers, { webhookId: 'wh_1', ...key });
    await expect(call).rejects.toThrow(reason);
    await expect(call).rejects.toThrow(errors.WebhookVerificationError);
  }
});

test.each([undefined, null, {}, { type: 'task.completed' }, new DataView(new ArrayBuffer(1))])(
  'a body that a framework has parsed is refused, and the error says what to do: %o',
  async (body) => {
    const options = { webhookId: 'wh_1', secret: SECRET };
    const call = webhooks.verify(body as unknown as string, signed(), options);
    await expect(call).rejects.toThrow(errors.WebhookVerificationError);
    await expect(call).rejects.toThrow('express.raw()');
  },
);

test('the example with Express receives webhooks', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/webhooks.md'), 'utf8');
  const [, code = ''] = /^```js\n(import express[\s\S]*?)^```/m.exec(page) ?? [];
  const body = code.replace(/^import .*$/gm, '');
  vi.stubEnv('ROTA_WEBHOOK_ID', 'wh_1').stubEnv('ROTA_WEBHOOK_SECRET', SECRET);
  const log = vi.spyOn(console, 'log').mockReturnValue();
  new Function('express', 'errors', 'webhooks', body)(express, errors, webhooks);
  const receive = expressRoutes['/webhooks/rota'];
  expect(await receive?.(Buffer.from(BODY), signed())).toBe(204);
  expect(log).toHaveBeenCalledWith(42, 'task.completed');
  expect(await receive?.(Buffer.from(`${BODY} `), signed())).toBe(400);
  vi.unstubAllEnvs();
});

test('a delivery to another receiver, an old one and an early one are refused', async () => {
  for (const key of [{ secret: SECRET }, { publicKey: PUBLIC }]) {
    const other = webhooks.verify(BODY, signed(), { webhookId: 'wh_2', ...key });
    await expect(other).rejects.toThrow('another receiver');
    for (const offset of [-400, 400]) {
      const late = webhooks.verify(BODY, signed(offset), { webhookId: 'wh_1', ...key });
      await expect(late).rejects.toThrow('too old');
    }
  }
});

test('a missing header is named', async () => {
  for (const name of Object.keys(signed())) {
    const headers = Object.fromEntries(Object.entries(signed()).filter(([each]) => each !== name));
    const call = webhooks.verify(BODY, headers, { webhookId: 'wh_1', secret: SECRET });
    await expect(call).rejects.toThrow(name.toLowerCase());
  }
});

test('a key is needed and is never shown', async () => {
  await expect(webhooks.verify(BODY, signed(), { webhookId: 'wh_1' })).rejects.toThrow(
    'Pass the secret',
  );
  const wrong = webhooks.verify(BODY, signed(), { webhookId: 'wh_1', secret: 'whsec_top secret' });
  const error = await wrong.catch((each: unknown) => each);
  expect(String(error)).toContain('base64');
  expect(String(error)).not.toContain('top secret');
});
