import type { PastCheck, ToolServer } from '@rota/sdk';
import { expect, test } from 'vitest';
import { allowedAfter, hints, shownValue } from './definition';
import { connectBody, emptyConnection, updateBody, withHeader } from './form';
import { cover, covers, type Slice } from './seen';
import { summary } from './summary';

test('all of it is seen only if no part was jumped over', () => {
  const look = (...parts: [number, number][]) =>
    parts.reduce<Slice[]>((seen, [from, to]) => cover(seen, { from, to }), []);
  expect(covers(look([0, 400], [300, 900]), 900)).toBe(true);
  expect(covers(look([0, 400], [600, 900]), 900)).toBe(false);
  expect(covers(look([0, 400], [600, 900], [350, 650]), 900)).toBe(true);
  expect(covers(look([100, 900]), 900)).toBe(false);
});

test('the order of keys is no difference', () => {
  expect(shownValue({ b: 1, a: { d: 2, c: 3 } })).toBe(shownValue({ a: { c: 3, d: 2 }, b: 1 }));
  expect(shownValue('as it is')).toBe('as it is');
  expect(shownValue(null)).toBeNull();
});

test('a tool is read-only or destructive only if its server says so', () => {
  expect(hints(null)).toEqual(['writes']);
  expect(hints({ readOnlyHint: 'true' })).toEqual(['writes']);
  expect(hints({ readOnlyHint: true, openWorldHint: true })).toEqual(['readOnly', 'openWorld']);
  expect(hints({ readOnlyHint: true, destructiveHint: true })).toEqual(['destructive']);
  expect(hints({ destructiveHint: 'true' })).toEqual(['writes']);
});

test('switching one tool keeps the others, and names that the server lost', () => {
  const tools = [
    { name: 'add', allowed: true },
    { name: 'note', allowed: true },
  ];
  expect(allowedAfter({ allowedTools: null }, tools, 'note', false)).toEqual(['add']);
  expect(allowedAfter({ allowedTools: ['add', 'gone'] }, tools, 'note', true)).toEqual([
    'add',
    'gone',
    'note',
  ]);
});

const server = {
  name: 'docs',
  url: 'https://docs.example/mcp',
  transport: 'streamable-http',
} as ToolServer;
const unchanged = {
  ...emptyConnection,
  name: 'docs',
  url: 'https://docs.example/mcp',
  tokenChange: 'keep' as const,
  headersChange: 'keep' as const,
};

test('a change sends only what differs, and secrets only on purpose', () => {
  expect(updateBody(server, unchanged)).toEqual({});
  expect(updateBody(server, { ...unchanged, name: 'papers' })).toEqual({ name: 'papers' });
  expect(updateBody(server, { ...unchanged, token: 'left over' })).toEqual({});
  expect(
    updateBody(server, {
      ...unchanged,
      tokenChange: 'replace',
      token: ' t ',
      headersChange: 'remove',
    }),
  ).toEqual({ auth: { type: 'bearer', token: 't' }, headers: null });
});

test('a connection without secrets sends none', () => {
  const form = { ...emptyConnection, name: ' docs ', url: 'https://docs.example/mcp' };
  expect(connectBody({ ...form, headers: [{ id: 1, name: '', value: 'x' }] })).toEqual({
    name: 'docs',
    url: 'https://docs.example/mcp',
    transport: 'streamable-http',
  });
});

test('each header row is a row of its own, also after others are removed', () => {
  const [first, second] = withHeader(withHeader([]));
  if (!first || !second) throw new Error('no rows');
  expect(second.id).not.toBe(first.id);
  const [kept, added] = withHeader([second]);
  expect(kept).toBe(second);
  expect(added?.id).not.toBe(second.id);
});

test('the health strip has words', () => {
  const check = (status: PastCheck['status']) => ({ status }) as PastCheck;
  expect(summary([check('CONNECTED'), check('CONNECTED')])).toBe('Last 2 checks: all succeeded');
  expect(summary([check('CONNECTED'), check('UNREACHABLE')])).toBe(
    'Last 2 checks: 1 connected, 1 unreachable',
  );
});
