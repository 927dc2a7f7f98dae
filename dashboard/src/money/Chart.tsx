import { type KeyboardEvent, useRef } from 'react';
import { utcShortDay } from './dates';
import { type Scale, type Spending, scale, tickLabel } from './series';
import { strings } from './strings';

const WIDTH = 1000;
const HEIGHT = 176;

type At = React.CSSProperties & { '--at': number };

/**
 * Bars by day. The bars are a picture; a row of buttons over them, one for each day, is what
 * pointers and keys meet, and says the day's figures to screen readers.
 */
export function Chart({
  spending,
  label,
  describe,
  shown,
  onShow,
}: {
  spending: Spending;
  label: string;
  /** The figures of a day in words. */
  describe: (day: number) => string;
  shown: number | null;
  onShow: (day: number | null) => void;
}) {
  const { days, totals } = spending;
  const last = days.length - 1;
  const figures = scale(Math.max(0, ...totals));
  const step = figures.ticks[1] ?? figures.max;
  const row = useRef<HTMLFieldSetElement>(null);
  const move = (event: KeyboardEvent) => {
    const from = shown ?? last;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (event.key === 'Escape') onShow(null);
    if (to === undefined) return;
    event.preventDefault();
    row.current?.querySelectorAll('button')[Math.max(0, Math.min(last, to))]?.focus();
  };
  return (
    <div className="chart">
      <div className="y" aria-hidden="true">
        {figures.ticks.map((tick) => (
          <span key={tick} style={{ '--at': (tick / figures.max) * 100 } as At}>
            {tickLabel(tick, step)}
          </span>
        ))}
      </div>
      <div className="plot-box">
        <Bars spending={spending} figures={figures} />
        <fieldset
          ref={row}
          className="plot-days"
          aria-label={label}
          onKeyDown={move}
          onPointerLeave={() => onShow(null)}
        >
          {days.map((day, index) => (
            <button
              key={day}
              type="button"
              tabIndex={index === (shown ?? last) ? 0 : -1}
              aria-label={describe(index)}
              data-shown={index === shown || undefined}
              onFocus={() => onShow(index)}
              onBlur={() => onShow(null)}
              onPointerEnter={() => onShow(index)}
              onClick={() => onShow(index)}
            />
          ))}
        </fieldset>
      </div>
      <div className="x" aria-hidden="true">
        {days.map((day, index) =>
          (last - index) % 7 === 0 ? (
            <span key={day} style={{ '--at': ((index + 0.5) / days.length) * 100 } as At}>
              {utcShortDay(day)}
            </span>
          ) : null,
        )}
      </div>
      <p className="sr">{strings.chartHint}</p>
    </div>
  );
}

function Bars({ spending, figures }: { spending: Spending; figures: Scale }) {
  const { days, series } = spending;
  const column = WIDTH / days.length;
  const height = (value: number) => (value / figures.max) * HEIGHT;
  return (
    <svg
      className="plot"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      aria-hidden="true"
    >
      {figures.ticks.map((tick) => (
        <line
          key={tick}
          className="grid"
          x1="0"
          x2={WIDTH}
          y1={HEIGHT - height(tick)}
          y2={HEIGHT - height(tick)}
        />
      ))}
      {days.map((day, index) => {
        let top = HEIGHT;
        return (
          <g key={day}>
            {series.map((each, at) => {
              const size = height(each.values[index] ?? 0);
              if (size <= 0) return null;
              top -= size;
              return (
                <rect
                  key={each.name ?? ''}
                  className={colour(at, series.length, each.name === null)}
                  x={column * (index + 0.16)}
                  width={column * 0.68}
                  y={top}
                  height={Math.max(size - 0.8, 0.4)}
                />
              );
            })}
          </g>
        );
      })}
    </svg>
  );
}

/** The class of a series. Grey is for what is summed, unless it is all there is. */
export const colour = (at: number, count: number, summed: boolean): string =>
  summed && count > 1 ? 's5' : `s${Math.min(at, 4) + 1}`;
