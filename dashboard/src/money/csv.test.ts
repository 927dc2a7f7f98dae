import type { Transaction } from '@rota/sdk';
import { expect, it } from 'vitest';
import { toCsv } from './csv';
import { details, isFromHold, kindsOf, once } from './ledger';

const transaction = (changes: Partial<Transaction>): Transaction => ({
  id: 'txn_1',
  kind: 'charge',
  createdAt: '2026-11-12T08:29:01Z',
  amountMicros: -73_201,
  amountCents: -8,
  changes: { allowance: 0, topUp: 0, held: -73_201, spent: 73_201, owed: 0 },
  taskId: 'task_1',
  run: 1,
  step: 7,
  model: 'strong',
  priceVersion: 'v1',
  estimated: false,
  reference: null,
  description: 'Call to strong',
  availableAfterMicros: 46_670_000,
  availableAfterCents: 4_667,
  taskName: 'Answer',
  agent: 'ticket-responder',
  ...changes,
});

it('writes exact amounts, quotes text and disarms formulas', () => {
  const csv = toCsv([transaction({ taskName: '=HYPERLINK("http://x"),\n' })]);
  const [header, ...rest] = csv.split('\r\n');
  expect(header?.split(',').slice(0, 4)).toEqual(['id', 'time', 'kind', 'amount_usd']);
  expect(rest.join('\r\n')).toContain('txn_1,2026-11-12T08:29:01Z,charge,-0.073201,46.670000,');
  expect(csv).toContain('"\'=HYPERLINK(""http://x""),\n"');
});

it('says where money came from', () => {
  expect(isFromHold(transaction({}))).toBe(true);
  const hold = transaction({
    kind: 'hold',
    model: null,
    priceVersion: null,
    run: 2,
    changes: { allowance: -300_000, topUp: -200_000, held: 500_000, spent: 0, owed: 0 },
  });
  expect(isFromHold(hold)).toBe(false);
  expect(details(hold)).toEqual(['run 2', 'from the allowance and the top-up']);
});

it('shows each transaction once, and only kinds that exist', () => {
  expect(once([transaction({}), transaction({}), transaction({ id: 'txn_2' })])).toHaveLength(2);
  expect(kindsOf('hold,nonsense,release')).toBe('hold,release');
  expect(kindsOf('nonsense')).toBeUndefined();
});
