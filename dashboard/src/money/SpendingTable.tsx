import { SafeText } from '../ui/SafeText';
import { utcDay } from './dates';
import { useSeriesName } from './names';
import type { Grouping } from './queries';
import { amountOf, type Spending } from './series';
import { strings } from './strings';

/** The figures of the chart as a table, the newest day first. Days without spending are left out. */
export function SpendingTable({ figures, grouping }: { figures: Spending; grouping: Grouping }) {
  const nameOf = useSeriesName(grouping);
  const { days, series, totals } = figures;
  const amount = (micros: number) => (micros ? amountOf(figures, micros) : '–');
  const split = series.length > 1 || series[0]?.name !== null;
  return (
    <section
      className="days-table"
      aria-label={strings.spendingTable}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and keys must reach that.
      tabIndex={0}
    >
      <table>
        <thead>
          <tr>
            <th scope="col">{strings.dayUtc}</th>
            {split &&
              series.map((each) => (
                <th key={each.name ?? ''} scope="col" className="end">
                  <SafeText>{nameOf(each)}</SafeText>
                </th>
              ))}
            <th scope="col" className="end">
              {strings.byTotal}
            </th>
          </tr>
        </thead>
        <tbody>
          {days
            .map((day, index) => ({ day, index }))
            .filter(({ index }) => totals[index])
            .reverse()
            .map(({ day, index }) => (
              <tr key={day}>
                <th scope="row">
                  <time dateTime={day}>{utcDay(day)}</time>
                </th>
                {split &&
                  series.map((each) => (
                    <td key={each.name ?? ''} className="end money">
                      {amount(each.values[index] ?? 0)}
                    </td>
                  ))}
                <td className="end money strong">{amount(totals[index] ?? 0)}</td>
              </tr>
            ))}
        </tbody>
      </table>
    </section>
  );
}
