import { Link } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useAccount } from '../shell/account';
import { Button, buttonClass } from '../ui/Button';
import { count } from '../ui/format';
import { SafeText } from '../ui/SafeText';
import { Shape } from '../ui/Status';
import { Segments } from '../ui/Tabs';
import type { Line } from './lines';
import { MoreRows } from './MoreRows';
import { Notices } from './Notices';
import { beginning } from './Preview';
import { Summary } from './Summary';
import type { Outcome } from './send';
import { strings } from './strings';
import type { Sent } from './useBatch';
import { useShown } from './useShown';

const { columns } = strings;
const FIRST = 50;

const words = {
  created: { shape: 'done', text: strings.resultCreated },
  refused: { shape: 'failed', text: strings.resultRefused },
  unsent: { shape: 'cancelled', text: strings.resultUnsent },
  unknown: { shape: 'waiting', text: strings.resultUnknown },
  next: { shape: 'pending', text: strings.resultNext },
} as const;

function Row({ line, outcome }: { line: Line; outcome: Outcome | undefined }) {
  const account = useAccount();
  const { shape, text } = words[outcome?.kind ?? 'next'];
  const name = <SafeText>{beginning(line.task.name)}</SafeText>;
  return (
    <tr>
      <td className="end faint" data-l={columns.line}>
        {line.number}
      </td>
      <td>
        <p className="strong clip">
          {outcome?.kind === 'created' ? (
            <Link
              className="link"
              to="/$account/tasks/$id"
              params={{ account, id: outcome.id }}
              preload={false}
            >
              {name}
            </Link>
          ) : (
            name
          )}
        </p>
      </td>
      <td>
        <span className={`status is-${shape}`}>
          <Shape shape={shape} />
          {text}
        </span>
        {outcome?.kind === 'refused' && (
          <p className="small wrap">
            <SafeText>{outcome.message}</SafeText>
          </p>
        )}
      </td>
    </tr>
  );
}

/** The lines that can be sent again, because it is certain that no task exists. */
const failedOf = ({ batch, outcomes }: Sent): number[] =>
  batch.lines.flatMap((_, at) =>
    ['refused', 'unsent'].includes(outcomes.get(at)?.kind ?? '') ? [at] : [],
  );

/** What became of each line, in order, while it is sent and after. */
export function Results({
  sent,
  onTryAgain,
  onStop,
  onAgain,
}: {
  sent: Sent;
  onTryAgain: () => void;
  onStop: () => void;
  /** Goes back to the form with these lines. */
  onAgain: (lines: number[]) => void;
}) {
  const account = useAccount();
  const top = useRef<HTMLElement>(null);
  useEffect(() => {
    top.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, []);
  const [view, setView] = useState<'all' | 'failed'>('all');
  const failed = failedOf(sent);
  const all = [...sent.batch.lines.keys()];
  const { shown, left, showMore } = useShown(view === 'failed' ? failed : all, FIRST);
  return (
    <section
      ref={top}
      className="page page-narrow stack-4"
      tabIndex={-1}
      aria-label={strings.results}
    >
      <Summary sent={sent} onStop={onStop} />
      <Notices sent={sent} onTryAgain={onTryAgain} onStop={onStop} />
      {sent.phase === 'ended' && (
        <div className="row row-wrap">
          {failed.length > 0 && (
            <Button look="primary" icon="retry" onClick={() => onAgain(failed)}>
              {strings.tryFailed(failed.length)}
            </Button>
          )}
          <Link
            className={buttonClass({ look: failed.length ? 'normal' : 'primary' })}
            to="/$account/tasks"
            params={{ account }}
            search={{ agent: sent.agent }}
          >
            {strings.seeTasks}
          </Link>
          <Button onClick={() => onAgain([])}>{strings.createMore}</Button>
        </div>
      )}
      <div className="card">
        {failed.length > 0 && (
          <div className="card-head">
            <Segments
              label={strings.views}
              options={[
                { name: 'all', label: `${strings.all} ${count(all.length)}` },
                { name: 'failed', label: `${strings.resultRefused} ${count(failed.length)}` },
              ]}
              selected={view}
              onSelect={setView}
            />
          </div>
        )}
        <table className="table table-batch table-results">
          <thead>
            <tr>
              <th scope="col" className="end">
                {columns.line}
              </th>
              <th scope="col">{columns.name}</th>
              <th scope="col">{columns.result}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((at) => {
              const line = sent.batch.lines[at];
              return line && <Row key={at} line={line} outcome={sent.outcomes.get(at)} />;
            })}
          </tbody>
        </table>
        <MoreRows left={left} onMore={showMore} />
      </div>
    </section>
  );
}
