/**
 * Verifies webhooks: that Rota sent them, to this receiver, just now. Signs them for tests.
 *
 * Signatures follow Standard Webhooks: `v1` with a shared secret (`whsec_…`), and `v1a` with a public
 * key (`whpk_…`).
 */
import { WebhookVerificationError } from './errors.ts';
import type { Event } from './generated/types.gen.ts';
import type { Json } from './options.ts';

/** How far the time of a webhook may be from now, in both directions. */
const TOLERANCE_S = 300;

/** An event, with the account that it belongs to and the webhook that it was sent to. */
export interface WebhookEvent extends Event {
  accountId: string;
  webhookId: string;
  /** The number of the event that was sent to this webhook before it. */
  previousSequence?: number;
}

export interface VerifyOptions {
  /** The ID of your webhook. A delivery to another receiver is refused, even if the signature is right. */
  webhookId: string;
  /** The secret `whsec_…`, or several while you rotate them. */
  secret?: string | readonly string[];
  /** The public key `whpk_…`, or several while you rotate them. */
  publicKey?: string | readonly string[];
  /** How old a webhook may be, in seconds. Default: 300. */
  toleranceS?: number;
  /** How the body is read. Default: the global `JSON`. */
  json?: Pick<Json, 'parse'>;
}

/** The headers of a request: of `Request`, of Node, or of a framework. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

type Bytes = Uint8Array<ArrayBuffer>;

/**
 * The event of a webhook. Throws WebhookVerificationError if something is not right. `body` is the
 * body exactly as it arrived: with Express, of a route with `express.raw()`.
 */
export async function verify(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  options: VerifyOptions,
): Promise<WebhookEvent> {
  const secrets = several(options.secret).map((each) => keyOf(each, 'whsec_'));
  const keys = several(options.publicKey).map((each) => keyOf(each, 'whpk_'));
  if (!secrets.length && !keys.length) {
    throw new TypeError('Pass the secret or the public key of the webhook.');
  }
  const bytes = bytesOfBody(body);
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  checkTime(timestamp, options.toleranceS ?? TOLERANCE_S);
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  if (!(await isAnyRight(signatures, signed, secrets, keys))) {
    throw new WebhookVerificationError('No signature matches. Check the secret or public key.');
  }
  const event = eventOf(bytes, options.json ?? JSON);
  if (event.webhookId !== options.webhookId) {
    throw new WebhookVerificationError('The webhook was sent to another receiver.');
  }
  return event;
}

export interface SignOptions {
  /** The secret `whsec_…`. */
  secret: string;
  /** The ID of the event. Default: `evt_test`. */
  messageId?: string;
  /** In seconds. Default: now. */
  timestamp?: number;
}

/** The headers of a webhook with this body, signed with `v1`. For tests of a receiver. */
export async function sign(
  body: string | Uint8Array | ArrayBuffer,
  { secret, messageId = 'evt_test', timestamp = Math.floor(Date.now() / 1_000) }: SignOptions,
): Promise<Record<string, string>> {
  const head = new TextEncoder().encode(`${messageId}.${timestamp}.`);
  const key = await hmacKey(keyOf(secret, 'whsec_'), 'sign');
  const signature = await crypto.subtle.sign('HMAC', key, joined(head, bytesOfBody(body)));
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`,
  };
}

/** A framework that has parsed the body gives something else. */
function bytesOfBody(body: unknown): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  // Not `instanceof`: the bytes can come from another realm, such as that of a test runner.
  if (ArrayBuffer.isView(body) && 'length' in body) return body as Uint8Array;
  if (Object.prototype.toString.call(body) === '[object ArrayBuffer]') {
    return new Uint8Array(body as ArrayBuffer);
  }
  throw new WebhookVerificationError(
    'The body is neither text nor bytes, so its signature cannot be checked. Pass the body as it ' +
      'arrived, before it is parsed. With Express, use express.raw().',
  );
}

const several = (given: string | readonly string[] | undefined): readonly string[] =>
  given === undefined ? [] : typeof given === 'string' ? [given] : given;

function headerOf(headers: WebhookHeaders, name: string): string {
  const found =
    typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  const value = Array.isArray(found) ? found.join(' ') : found;
  if (typeof value !== 'string')
    throw new WebhookVerificationError(`The header ${name} is missing.`);
  return value;
}

function checkTime(timestamp: string, toleranceS: number): void {
  // Ten digits are enough until the year 2286.
  if (!/^[0-9]{1,10}$/.test(timestamp)) {
    throw new WebhookVerificationError('The header webhook-timestamp is not a number.');
  }
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > toleranceS) {
    throw new WebhookVerificationError('The webhook is too old, or a clock is wrong.');
  }
}

async function isAnyRight(
  signatures: readonly string[],
  signed: Bytes,
  secrets: readonly Bytes[],
  keys: readonly Bytes[],
): Promise<boolean> {
  for (const signature of signatures) {
    const [version, text] = signature.split(',', 2);
    const value = bytesOf(text ?? '');
    if (!value) continue;
    const isPublic = version === 'v1a';
    if (version !== 'v1' && !isPublic) continue;
    for (const key of isPublic ? keys : secrets) {
      if (await (isPublic ? isSignedBy(key, value, signed) : isSharedBy(key, value, signed))) {
        return true;
      }
    }
  }
  return false;
}

// `verify` compares in constant time.
async function isSharedBy(secret: Bytes, signature: Bytes, signed: Bytes): Promise<boolean> {
  return crypto.subtle.verify('HMAC', await hmacKey(secret, 'verify'), signature, signed);
}

function hmacKey(secret: Bytes, usage: 'sign' | 'verify'): Promise<CryptoKey> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', secret, algorithm, false, [usage]);
}

async function isSignedBy(publicKey: Bytes, signature: Bytes, signed: Bytes): Promise<boolean> {
  const key = await crypto.subtle.importKey('raw', publicKey, 'Ed25519', false, ['verify']);
  return crypto.subtle.verify('Ed25519', key, signature, signed);
}

function eventOf(body: Uint8Array, json: Pick<Json, 'parse'>): WebhookEvent {
  try {
    const event = json.parse(new TextDecoder().decode(body)) as WebhookEvent;
    if (typeof event.type === 'string' && typeof event.webhookId === 'string') return event;
  } catch {
    // The error below says it.
  }
  throw new WebhookVerificationError('The body is not an event of Rota.');
}

function keyOf(key: string, prefix: string): Bytes {
  const bytes = bytesOf(key.startsWith(prefix) ? key.slice(prefix.length) : key);
  // The message does not repeat the key, which may be a secret.
  if (!bytes?.length) throw new TypeError(`A key is not base64 with the prefix ${prefix}.`);
  return bytes;
}

function bytesOf(base64: string): Bytes | null {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return null;
  try {
    return Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  } catch {
    return null;
  }
}

function joined(head: Uint8Array, body: Uint8Array): Bytes {
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  return whole;
}
