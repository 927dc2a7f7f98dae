/** A service that answers with one outcome after the other. */
import { vi } from 'vitest';
import { errors, Rota, type RotaOptions } from '../src/index.ts';

/** `never`: no response until the request is ended. */
export type Outcome = Response | Error | 'never' | ((signal: AbortSignal) => Response);

export interface Sent {
  url: string;
  init: RequestInit & { headers: Record<string, string> };
}

export function stub(...outcomes: Outcome[]) {
  const sent: Sent[] = [];
  const send: typeof fetch = async (url, init) => {
    sent.push({ url: String(url), init: init as Sent['init'] });
    const outcome = outcomes.shift();
    // An error of the SDK, so that it is not taken for a broken connection.
    if (!outcome) throw new errors.RotaError('Nobody expects another request.');
    if (outcome instanceof Error) throw outcome;
    if (typeof outcome === 'function') return outcome(init?.signal as AbortSignal);
    if (outcome === 'never') {
      return new Promise((_, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
      });
    }
    return outcome;
  };
  const client = (options: RotaOptions = {}) =>
    new Rota({ baseUrl: 'http://x', fetch: send, ...options });
  return { sent, client };
}

export const answer = (body: unknown, status = 200): Response =>
  new Response(JSON.stringify(body), { status });

export const refusal = (
  status: number,
  code: string,
  headers: Record<string, string> = {},
  message = 'No.',
): Response => new Response(JSON.stringify({ error: { code, message } }), { status, headers });

export const cut = (code?: string): Error =>
  new TypeError('fetch failed', { cause: Object.assign(new Error('cut'), { code }) });

/** A stream that sends these pieces and then ends, or breaks. */
export function stream(pieces: string[], end: 'close' | 'break' = 'close'): Response {
  const bytes = new TextEncoder();
  const left = [...pieces];
  return new Response(
    new ReadableStream<Uint8Array>({
      pull(controller) {
        const piece = left.shift();
        if (piece !== undefined) controller.enqueue(bytes.encode(piece));
        else if (end === 'close') controller.close();
        else controller.error(new TypeError('terminated'));
      },
    }),
    { headers: { 'Content-Type': 'text/event-stream; charset=utf-8' } },
  );
}

export const eventText = (sequence: number, type: string, data: object = {}): string =>
  `id: ${sequence}\nevent: ${type}\ndata: ${JSON.stringify({ sequence, type, data })}\n\n`;

/** The outcome of a call whose waits pass at once. */
export async function settled<T>(call: Promise<T>): Promise<T> {
  let done = false;
  const end = () => {
    done = true;
  };
  call.then(end, end);
  while (!done) await vi.advanceTimersByTimeAsync(1_000);
  return call;
}
