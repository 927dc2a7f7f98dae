import { expect, test } from 'vitest';
import { type Json, parseExact } from '../../api/exact';
import { columnsOf } from './columns';

const bills = parseExact<Json[]>(`[
  {"invoiceId": "INV-1", "amountUsd": 1240.0, "year": 2026, "quantity": 2, "size": 1e3},
  {"invoiceId": "INV-2", "amountUsd": 860.5, "year": 2026, "quantity": 10, "size": 1},
  {"invoiceId": "INV-3", "amountUsd": -0.125, "year": 2025, "quantity": 1, "size": 2}
]`);
const keys = ['invoiceId', 'amountUsd', 'year', 'quantity', 'size'];
const columns = columnsOf(
  keys.map((key) => ({ key })),
  bills,
);
const named = (key: string) => columns.find((column) => column.key === key);
const cells = (key: string) => bills.map((row) => named(key)?.cell(row));

test('amounts have their sign, the same number of decimals and a sum', () => {
  expect(named('amountUsd')?.name).toBe('Amount');
  expect(cells('amountUsd')).toEqual(['$1,240.000', '$860.500', '−$0.125']);
  expect(named('amountUsd')?.sum(bills)).toBe('$2,100.375');
  expect(named('amountUsd')?.sum(bills.slice(0, 2))).toBe('$2,100.500');
  expect(named('quantity')?.sum(bills)).toBe('13');
});

test('numbers that are not amounts stay as they are, without a sum', () => {
  expect(cells('year')).toEqual(['2026', '2026', '2025']);
  expect(named('year')?.sum(bills)).toBeNull();
  expect(cells('size')).toEqual(['1e3', '1', '2']);
  expect(named('size')?.sum(bills)).toBeNull();
  expect(named('invoiceId')?.end).toBe(false);
});

test('a sum is exact, also where JavaScript would round', () => {
  const rows = parseExact<Json[]>('[{"total": 0.1}, {"total": 0.2}, {"total": 90071992547409930}]');
  const [total] = columnsOf([{ key: 'total' }], rows);
  expect(total?.sum(rows)).toBe('90,071,992,547,409,930.3');
});

test('amounts of several currencies are not added', () => {
  const rows = parseExact<Json[]>(
    '[{"amount": 1, "currency": "EUR"}, {"amount": 2, "currency": "USD"}]',
  );
  const [amount] = columnsOf([{ key: 'amount' }], rows);
  expect(amount?.sum(rows)).toBeNull();
});
