import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { errors } from '../src/index.ts';
import { refusal, settled, stub } from './stub.ts';

const TIMEOUT_MS = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** An export that sends a line each time that it is asked for one, and its end after the last. */
function lines(count: number, pauseMs: number) {
  let sent = 0;
  return (signal: AbortSignal) =>
    new Response(
      new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            await new Promise((resolve, reject) => {
              setTimeout(resolve, pauseMs);
              signal.addEventListener('abort', () => reject(signal.reason));
            });
            sent += 1;
            controller.enqueue(new TextEncoder().encode(`{"line":${sent}}\n`));
            if (sent === count) controller.close();
          },
        },
        { highWaterMark: 0 },
      ),
      { headers: { 'Content-Type': 'application/x-ndjson' } },
    );
}

async function text(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  let found = '';
  for await (const piece of pieces) found += new TextDecoder().decode(piece);
  return found;
}

test('an export arrives in pieces and can take longer than the timeout of a request', async () => {
  const { client, sent } = stub(lines(30, 10_000));
  const found = await settled(text(client({ timeoutMs: TIMEOUT_MS }).data.export()));
  expect(found.split('\n')).toHaveLength(31);
  expect(sent).toHaveLength(1);
});

test('an export that becomes silent or fails is not started again', async () => {
  const silent = stub(lines(2, 100_000));
  await expect(settled(text(silent.client().data.export()))).rejects.toThrow(
    errors.APITimeoutError,
  );
  const down = stub(refusal(503, 'SERVICE_UNAVAILABLE'));
  await expect(settled(text(down.client().data.export()))).rejects.toThrow(
    errors.ServiceUnavailableError,
  );
  expect([silent.sent, down.sent].map(({ length }) => length)).toEqual([1, 1]);
});

test('leaving an export ends its request', async () => {
  const { client, sent } = stub(lines(30, 10));
  const pieces = client().data.export();
  expect((await settled(pieces.next())).value).toHaveLength('{"line":1}\n'.length);
  await pieces.return();
  expect(sent[0]?.init.signal?.aborted).toBe(true);
});
