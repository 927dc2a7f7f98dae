import { expect, test } from 'vitest';
import { Decoder } from '../src/sse.ts';

const TEXT =
  ': open\r\n\r\nid: 7\r\nevent: task.created\ndata: {"a":"ü\u2028🜁"}\n\ndata:one\ndata: two\nretry: 5\n\n';

test('messages are complete however the network cuts them', () => {
  const bytes = new TextEncoder().encode(TEXT);
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const texts = new TextDecoder();
    const decoder = new Decoder();
    const found = [];
    for (let at = 0; at < bytes.length; at += size) {
      found.push(...decoder.feed(texts.decode(bytes.subarray(at, at + size), { stream: true })));
    }
    expect(found).toEqual([
      { id: '7', event: 'task.created', data: '{"a":"ü\u2028🜁"}' },
      { id: null, event: 'message', data: 'one\ntwo' },
    ]);
  }
});
