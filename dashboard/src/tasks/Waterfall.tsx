import type { Task } from '@rota/sdk';
import { type CSSProperties, useMemo, useState } from 'react';
import { Button } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { coarse, count, duration } from '../ui/format';
import { Icon } from '../ui/Icon';
import { Loading } from '../ui/Loading';
import { Money } from '../ui/Money';
import { Shape } from '../ui/Status';
import { useClock } from './clock';
import { foldEdges, foldMask, type Scale, scaleOf, type Tick } from './folding';
import { isOpenStatus } from './queries';
import { strings } from './strings';
import { amountsOf, intervalsOf, rowsOf } from './timelineRows';
import { useFork } from './useFork';
import type { useTimelines } from './useTimelines';
import { WaterfallRow } from './WaterfallRow';

/** More rows than this are drawn only when somebody asks for them. */
const MANY = 200;

function EmptyTimeline({ task }: { task: Task }) {
  const isOpen = isOpenStatus(task.status);
  const hosted = isOpen ? strings.noStepsHint : strings.noStepsEnded;
  const hint = task.usage.budgetUsd ? hosted : strings.noStepsExternal;
  return (
    <Empty title={isOpen ? strings.noStepsYet : strings.noSteps}>
      <p>{hint}</p>
    </Empty>
  );
}

const idleText = (ms: number): string => `+${ms < 60_000 ? duration(ms) : coarse(ms)}`;

const tickText = ({ ms, fold, also = [] }: Tick): string => {
  if (fold) return [ms, ...also].map(idleText).join(', ');
  return ms < 120_000 ? `${ms / 1_000} s` : duration(ms);
};

const foldStyle = ({ folds }: Scale) =>
  ({ '--fold-mask': foldMask(folds), '--fold-edges': foldEdges(folds) }) as CSSProperties;

function Head({ ticks }: { ticks: Tick[] }) {
  return (
    <thead>
      <tr className="wf-row wf-head">
        <th scope="col">{strings.step}</th>
        <th scope="col" className="wf-track">
          <span className="sr">{strings.time}</span>
          {ticks.map((tick) => (
            <span
              key={tick.at}
              className={tick.at === 0 ? 'tick tick-first' : 'tick'}
              style={{ '--at': tick.at } as CSSProperties}
            >
              {tickText(tick)}
            </span>
          ))}
        </th>
        <th scope="col" className="end">
          {strings.tokens}
        </th>
        <th scope="col" className="end">
          {strings.cost}
        </th>
      </tr>
    </thead>
  );
}

/** The end of a task that failed. The step before it can have succeeded. Why stands above. */
function FailedRow() {
  return (
    <tr className="wf-row wf-failed">
      <td colSpan={4}>
        <span className="wf-no" />
        <Icon name="alert" />
        {strings.failed}
      </td>
    </tr>
  );
}

function Total({
  task,
  timeline,
  folded,
}: {
  task: Task;
  timeline: ReturnType<typeof useTimelines>;
  folded: boolean;
}) {
  const sum = amountsOf(task.id, timeline.timelines);
  return (
    <tfoot>
      <tr className="wf-row wf-total">
        <td className="strong">{sum.complete ? strings.total : strings.partialTotal}</td>
        <td className="faint small wf-note">{folded && strings.folded}</td>
        <td className="end faint">
          {count(sum.inputTokens)} + {count(sum.outputTokens)}
        </td>
        <td className="end strong">
          <Money usd={sum.costUsd} fine />
        </td>
      </tr>
    </tfoot>
  );
}

function Legend({ scale }: { scale: Scale }) {
  return (
    <p className="legend-row small soft">
      <span>
        <i className="key-bar" />
        {strings.legend.model}
      </span>
      <span>
        <i className="key-bar key-tool" />
        {strings.legend.tool}
      </span>
      <span>
        <Shape shape="waiting" />
        {strings.legend.decision}
      </span>
      {scale.folds.length > 0 && (
        <span>
          <i className="key-fold" />
          {strings.legend.fold}
        </span>
      )}
    </p>
  );
}

/** When each step took place, what it used and what it cost, with idle time folded. */
export function Waterfall({
  task,
  timeline,
}: {
  task: Task;
  timeline: ReturnType<typeof useTimelines>;
}) {
  const { timelines, isOpen, toggle } = timeline;
  const [all, setAll] = useState(false);
  const fork = useFork(task, timelines.get(task.id));
  const now = useClock(task.status === 'RUNNING' || task.status === 'WAITING_APPROVAL');
  const scale = useMemo(() => {
    const { work, waits } = intervalsOf(timelines, now);
    return scaleOf(work, waits);
  }, [timelines, now]);
  if (!timelines.has(task.id)) return timeline.error ? null : <Loading />;
  const rows = rowsOf(task.id, timelines, isOpen);
  if (!rows.length) return <EmptyTimeline task={task} />;
  const hidden = all ? 0 : Math.max(0, rows.length - MANY);
  return (
    <>
      {hidden > 0 && (
        <p className="tab-panel">
          <Button size="s" onClick={() => setAll(true)}>
            {strings.showEarlier(hidden)}
          </Button>
        </p>
      )}
      <div className="card wf-card">
        <table
          className={scale.folds.length ? 'wf wf-folded' : 'wf'}
          aria-label={strings.table}
          style={foldStyle(scale)}
        >
          <Head ticks={scale.ticks} />
          <tbody>
            {rows.slice(hidden).map((row) =>
              row.kind === 'run' ? (
                <tr key={row.key} className="wf-row wf-run">
                  <th scope="rowgroup" colSpan={4} className="strong">
                    {strings.run(row.run)}
                  </th>
                </tr>
              ) : (
                <WaterfallRow
                  key={row.key}
                  row={row}
                  scale={scale}
                  now={now}
                  onToggle={toggle}
                  onFork={fork.from(row)}
                />
              ),
            )}
            {task.status === 'FAILED' && <FailedRow />}
          </tbody>
          <Total task={task} timeline={timeline} folded={scale.folds.length > 0} />
        </table>
      </div>
      <Legend scale={scale} />
      {fork.dialog}
    </>
  );
}
