/** Transactions as a table for spreadsheets. */
import type { Transaction } from '@rota/sdk';

const columns: [string, (transaction: Transaction) => string | number | null][] = [
  ['id', (m) => m.id],
  ['time', (m) => m.createdAt],
  ['kind', (m) => m.kind],
  ['amount_usd', (m) => decimal(m.amountMicros)],
  ['available_after_usd', (m) => decimal(m.availableAfterMicros)],
  ['allowance_usd', (m) => decimal(m.changes.allowance)],
  ['top_up_usd', (m) => decimal(m.changes.topUp)],
  ['held_usd', (m) => decimal(m.changes.held)],
  ['spent_usd', (m) => decimal(m.changes.spent)],
  ['owed_usd', (m) => decimal(m.changes.owed)],
  ['task_id', (m) => text(m.taskId)],
  ['task', (m) => text(m.taskName)],
  ['agent', (m) => text(m.agent)],
  ['run', (m) => m.run],
  ['step', (m) => m.step],
  ['model', (m) => text(m.model)],
  ['price_version', (m) => text(m.priceVersion)],
  ['estimated', (m) => (m.kind === 'charge' ? String(m.estimated) : null)],
  ['reference', (m) => text(m.reference)],
  ['description', (m) => text(m.description)],
];

/** Micro-dollars as dollars with six decimals. Integers all the way, so that nothing is rounded. */
function decimal(micros: number): string {
  const digits = String(Math.abs(micros)).padStart(7, '0');
  return `${micros < 0 ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Text that others wrote must not become a formula when a spreadsheet opens it. */
const text = (value: string | null): string | null =>
  value !== null && /^[\s]*[=+\-@]/.test(value) ? `'${value}` : value;

function cell(value: string | number | null): string {
  const written = value === null ? '' : String(value);
  return /[",\r\n]/.test(written) ? `"${written.replaceAll('"', '""')}"` : written;
}

export function toCsv(transactions: Transaction[]): string {
  const lines = [
    columns.map(([name]) => name),
    ...transactions.map((transaction) => columns.map(([, value]) => cell(value(transaction)))),
  ];
  return `${lines.map((line) => line.join(',')).join('\r\n')}\r\n`;
}
