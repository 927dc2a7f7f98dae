import { describe, expect, it } from 'vitest';
import { scale, spending, tickLabel } from './series';

const entry = (key: string, group: string | null, costUsd: string) => ({ key, group, costUsd });

describe('spending', () => {
  it('stacks the most expensive groups, sums the rest and includes days without usage', () => {
    const figures = spending({
      from: '2026-10-30',
      to: '2026-11-02',
      usage: [
        entry('2026-10-30', 'e', '0.100000'),
        entry('2026-10-30', 'a', '5.000000'),
        entry('2026-11-01', 'b', '4.000000'),
        entry('2026-11-01', 'c', '3.000000'),
        entry('2026-11-01', 'd', '2.000000'),
        entry('2026-11-01', 'f', '0.200000'),
      ],
    });
    expect(figures.days).toEqual(['2026-10-30', '2026-10-31', '2026-11-01', '2026-11-02']);
    expect(figures.series.map(({ name, others }) => [name, others])).toEqual([
      ['a', null],
      ['b', null],
      ['c', null],
      ['d', null],
      [null, 2],
    ]);
    expect(figures.series.at(-1)?.values).toEqual([100_000, 0, 200_000, 0]);
    expect(figures.totals).toEqual([5_100_000, 0, 9_200_000, 0]);
    expect(figures.total).toBe(14_300_000);
  });

  it('does not say how many others there are when the service summed them', () => {
    const { series } = spending({
      from: '2026-11-01',
      to: '2026-11-01',
      usage: [entry('2026-11-01', 'a', '1.000000'), entry('2026-11-01', null, '0.500000')],
    });
    expect(series.map(({ name, others }) => [name, others])).toEqual([
      ['a', null],
      [null, null],
    ]);
  });
});

describe('the scale', () => {
  it.each([
    [2_890_000, ['$0', '$1', '$2', '$3']],
    [430_000, ['$0', '$0.20', '$0.40', '$0.60']],
    [7_000, ['$0', '$0.002', '$0.004', '$0.006', '$0.008']],
    [0, ['$0', '$1']],
  ])('has round steps up to %i micro-dollars', (highest, labels) => {
    const { ticks } = scale(highest);
    expect(ticks.map((tick) => tickLabel(tick, ticks[1] ?? 1))).toEqual(labels);
  });
});
