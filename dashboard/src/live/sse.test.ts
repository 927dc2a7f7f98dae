import { expect, test } from 'vitest';
import { messages, parse } from './sse';

test('a comment is not a message', () => expect(parse(': open')).toBeNull());

test('messages are complete however the network cuts them', async () => {
  const bytes = new TextEncoder().encode(
    ': open\n\nid: 7\nevent: task.created\ndata: {"a":"ü"}\n\n',
  );
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  const received = [];
  for await (const message of messages(body)) received.push(message);
  expect(received).toEqual([{ id: '7', event: 'task.created', data: '{"a":"ü"}' }]);
});
