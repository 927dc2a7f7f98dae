/** Ledger entries in words. */
import type { Transaction, TransactionKind } from '@rota/sdk';
import { strings } from './strings';

/** The choices of the filter. The URL and the API have the kinds, separated by commas. */
export const filters: { label: string; kinds: string | undefined }[] = [
  { label: strings.allKinds, kinds: undefined },
  { label: strings.filter.charges, kinds: 'charge' },
  { label: strings.filter.holds, kinds: 'hold,release' },
  { label: strings.filter.topUps, kinds: 'top_up' },
  { label: strings.filter.allowance, kinds: 'allowance,expiry' },
  {
    label: strings.filter.returns,
    kinds: 'refund,refund_reversal,dispute,dispute_reversal',
  },
];

const known: readonly string[] = Object.keys(strings.kinds);

/** The kinds of a URL that exist. Undefined shows all. */
export function kindsOf(text: string | undefined): string | undefined {
  const kinds = text?.split(',').filter((kind) => known.includes(kind));
  return kinds?.length ? kinds.join(',') : undefined;
}

export const filterLabel = (kinds: string | undefined): string =>
  filters.find((filter) => filter.kinds === kinds)?.label ??
  (kinds ?? '')
    .split(',')
    .map((kind) => strings.kinds[kind as TransactionKind])
    .join(', ');

/** Where the money came from or went to. */
function source({ changes, kind }: Transaction): string | null {
  const parts = [
    changes.allowance ? strings.allowanceName : null,
    changes.topUp ? strings.topUpName : null,
  ].filter((part) => part !== null);
  if (!parts.length) return null;
  const names = parts.join(` ${strings.and} `);
  return kind === 'hold' || kind === 'charge' ? strings.from(names) : strings.backTo(names);
}

/** The line below what a transaction was for. The agent's name stands before it. */
export function details(transaction: Transaction): string[] {
  const { kind, changes, run, model, estimated, priceVersion, reference } = transaction;
  const parts: (string | null)[] = [];
  if (run !== null && run > 1) parts.push(strings.run(run));
  if (kind === 'charge') {
    parts.push(model && strings.model(model), estimated ? strings.estimated : null);
    parts.push(priceVersion && strings.prices(priceVersion));
    if (changes.held === 0) parts.push(strings.late);
  }
  if (kind === 'hold' || kind === 'release') parts.push(source(transaction));
  if (reference) parts.push(reference);
  if (changes.owed > 0) parts.push(strings.paidOwed);
  if (changes.owed < 0) parts.push(strings.becameOwed);
  return parts.filter((part): part is string => Boolean(part));
}

/** A name can be a sentence. Before a dot it has no full stop. */
export const withoutStop = (name: string): string => name.replace(/([^.])\.$/, '$1');

/** Whether the money came from a hold, so that what is available did not change. */
export const isFromHold = ({ changes }: Transaction): boolean =>
  changes.allowance === 0 && changes.topUp === 0 && changes.held !== 0;

/** Entries of several pages once each: while pages are read, new entries move older ones on. */
export function once(transactions: Transaction[]): Transaction[] {
  const seen = new Set<string>();
  return transactions.filter(({ id }) => !seen.has(id) && seen.add(id));
}
