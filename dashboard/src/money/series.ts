/** The figures of the chart: days, stacked series, and a scale with round steps. */
import type { UsageResponse } from '@rota/sdk';
import { usd } from '../ui/format';

/** The API sums what is not among the most expensive groups as a group without a name. */
type UsageEntry = { key: string; costUsd: string; group?: string | null };

export interface Series {
  /** The agent or model. Null for the sum of all others, or of everything. */
  name: string | null;
  /** How many are summed, if that is known. */
  others: number | null;
  /** Micro-dollars for each day. */
  values: number[];
  total: number;
}

export interface Spending {
  days: string[];
  series: Series[];
  /** Micro-dollars for each day. */
  totals: number[];
  total: number;
}

/** The series that have a colour of their own. The rest is one series in grey. */
const OWN_COLOURS = 4;

const micros = (usd: string): number => Math.round(Number(usd) * 1e6);
const sum = (values: number[]): number => values.reduce((all, value) => all + value, 0);

/** Amounts of a chart have the same decimals. A month of less than a dollar has more of them. */
export const amountOf = (spending: Spending, micros: number): string =>
  usd(micros / 1e6, spending.total < 1e6 ? 4 : 2);

export function daysBetween(from: string, to: string): string[] {
  const days: string[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += 86_400_000) {
    days.push(new Date(at).toISOString().slice(0, 10));
  }
  return days;
}

export function spending(response: Pick<UsageResponse, 'from' | 'to'> & { usage: UsageEntry[] }) {
  const days = daysBetween(response.from, response.to);
  const at = new Map(days.map((day, index) => [day, index]));
  const groups = new Map<string | null, number[]>();
  for (const entry of response.usage) {
    const index = at.get(entry.key);
    if (index === undefined) continue;
    const name = entry.group ?? null;
    const values = groups.get(name) ?? days.map(() => 0);
    values[index] = (values[index] ?? 0) + micros(entry.costUsd);
    groups.set(name, values);
  }
  const named = [...groups]
    .filter(([name]) => name !== null)
    .map(([name, values]): Series => ({ name, others: null, values, total: sum(values) }))
    .filter((series) => series.total > 0)
    .sort((a, b) => b.total - a.total);
  const series = [...named.slice(0, OWN_COLOURS)];
  const rest = others(named.slice(OWN_COLOURS), groups.get(null), days.length);
  if (rest) series.push(rest);
  const totals = days.map((_, index) => sum(series.map((each) => each.values[index] ?? 0)));
  return { days, series, totals, total: sum(totals) } satisfies Spending;
}

function others(rest: Series[], unnamed: number[] | undefined, length: number): Series | null {
  const parts = [...rest.map((series) => series.values), ...(unnamed ? [unnamed] : [])];
  const values = Array.from({ length }, (_, day) => sum(parts.map((part) => part[day] ?? 0)));
  const total = sum(values);
  if (total === 0) return null;
  const only = rest.length === 1 && !unnamed ? rest[0] : undefined;
  return only ?? { name: null, others: unnamed ? null : rest.length, values, total };
}

export interface Scale {
  max: number;
  ticks: number[];
}

/** At most five steps of 1, 2 or 5 times a power of ten. Micro-dollars. */
export function scale(highest: number): Scale {
  if (highest <= 0) return { max: 1e6, ticks: [0, 1e6] };
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? power);
  const steps = Math.ceil(highest / step);
  return { max: steps * step, ticks: Array.from({ length: steps + 1 }, (_, n) => n * step) };
}

/** The label of a step: "$4", "$0.50", "$0.002". */
export function tickLabel(value: number, step: number): string {
  const decimals = step % 1e6 === 0 ? 0 : step % 10_000 === 0 ? 2 : step % 1_000 === 0 ? 3 : 4;
  return value === 0
    ? '$0'
    : `$${(value / 1e6).toLocaleString('en-US', {
        minimumFractionDigits: decimals,
        maximumFractionDigits: decimals,
      })}`;
}
