import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Segments } from '../ui/Tabs';
import { Chart, colour } from './Chart';
import { utcDay } from './dates';
import { useSeriesName } from './names';
import { type Grouping, usageQuery } from './queries';
import { SpendingTable } from './SpendingTable';
import { amountOf, type Spending as Figures, spending } from './series';
import { strings } from './strings';

const route = getRouteApi('/$account/money');

const groupings: { name: Grouping; label: string }[] = [
  { name: 'agent', label: strings.byAgent },
  { name: 'model', label: strings.byModel },
  { name: 'total', label: strings.byTotal },
];

function useGrouping() {
  const { by } = route.useSearch();
  const navigate = route.useNavigate();
  const grouping: Grouping = by === 'model' || by === 'total' ? by : 'agent';
  const group = (name: Grouping) =>
    navigate({
      search: (now) => ({ ...now, by: name === 'agent' ? undefined : name }),
      replace: true,
      resetScroll: false,
    });
  return { grouping, group };
}

/** What was spent in 30 days, by day. */
export function Spending() {
  const id = useId();
  const { grouping, group } = useGrouping();
  const { data, error } = useQuery(usageQuery(grouping));
  const [asTable, setAsTable] = useState(false);
  // While another grouping loads, the previous one is shown, under its own name.
  const figures = data && spending(data);
  const of = groupings.find(({ name }) => data?.groupBy.endsWith(name))?.name ?? 'total';
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head card-head-l">
        <div>
          <h2 className="small soft regular" id={id}>
            {strings.spent(figures?.days.length ?? 30)}
          </h2>
          <p className="money num-l">{figures ? amountOf(figures, figures.total) : ' '}</p>
        </div>
        <span className="row row-wrap push">
          <Button look="quiet" size="s" onClick={() => setAsTable((shown) => !shown)}>
            {asTable ? strings.asChart : strings.asTable}
          </Button>
          <Segments
            label={strings.groupBy}
            options={groupings}
            selected={grouping}
            onSelect={group}
          />
        </span>
      </div>
      {error && (
        <div className="card-pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {!figures && !error && <Loading />}
      {figures &&
        (figures.total === 0 ? (
          <p className="card-pad soft">{strings.nothingSpent}</p>
        ) : asTable ? (
          <SpendingTable figures={figures} grouping={of} />
        ) : (
          <SpendingChart figures={figures} grouping={of} />
        ))}
    </section>
  );
}

function SpendingChart({ figures, grouping }: { figures: Figures; grouping: Grouping }) {
  const [shown, setShown] = useState<number | null>(null);
  const nameOf = useSeriesName(grouping);
  const { days, series, totals } = figures;
  const describe = (day: number) => {
    const parts = series
      .filter((each) => series.length > 1 && each.values[day])
      .map((each) => `${nameOf(each)} ${amountOf(figures, each.values[day] ?? 0)}`);
    const total = `${utcDay(days[day] ?? '')}: ${amountOf(figures, totals[day] ?? 0)}`;
    return parts.length ? `${total}. ${parts.join(', ')}` : total;
  };
  const label = strings.chart(utcDay(days[0] ?? ''), utcDay(days.at(-1) ?? ''), grouping);
  return (
    <div className="chart-wrap">
      <Chart spending={figures} label={label} describe={describe} shown={shown} onShow={setShown} />
      <div className="chart-legend small">
        <p className="row">
          <span className="strong">
            {shown === null ? strings.allDays(days.length) : utcDay(days[shown] ?? '')}
          </span>
          <span className="money strong push">
            {amountOf(figures, shown === null ? figures.total : (totals[shown] ?? 0))}
          </span>
        </p>
        <ul>
          {series.map((each, at) => (
            <li key={each.name ?? ''}>
              <i className={`key ${colour(at, series.length, each.name === null)}`} />
              <span className="clip">
                <SafeText>{nameOf(each)}</SafeText>
              </span>
              <span className="money num">
                {amountOf(figures, shown === null ? each.total : (each.values[shown] ?? 0))}
              </span>
            </li>
          ))}
        </ul>
        <p className="tiny faint">{strings.utc}</p>
      </div>
    </div>
  );
}
