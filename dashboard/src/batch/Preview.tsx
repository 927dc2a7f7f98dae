import { useState } from 'react';
import { count } from '../ui/format';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { Segments } from '../ui/Tabs';
import type { Batch, Line } from './lines';
import { MoreRows } from './MoreRows';
import { strings } from './strings';
import { useShown } from './useShown';

const { columns } = strings;
const MAX_SHOWN = 200;
/** So that a phone reaches the quote below it soon. */
const FIRST = 20;

/** The beginning of a text. The rest does not fit on its line. */
export const beginning = (text: string): string => text.slice(0, MAX_SHOWN);

function Row({ line, wide }: { line: Line; wide: boolean }) {
  const { number, task, problem } = line;
  return (
    <tr>
      <td className="end faint" data-l={columns.line}>
        {number}
      </td>
      <td>
        <p className="strong clip">
          <SafeText>{beginning(task.name)}</SafeText>
        </p>
        {problem && (
          <p className="error">
            <Icon name="alert" small />
            {problem}
          </p>
        )}
      </td>
      <td className={task.input === task.name ? 'not-phone' : undefined}>
        <p className="soft clip">
          <SafeText>{beginning(task.input ?? task.description ?? '')}</SafeText>
        </p>
      </td>
      {wide && (
        <td className="end" data-l={columns.priority}>
          <SafeText>{beginning(line.fields.priority ?? '')}</SafeText>
        </td>
      )}
    </tr>
  );
}

/** What will be created, with what is wrong at its line. */
export function Preview({ batch }: { batch: Batch }) {
  const [view, setView] = useState<'all' | 'problems'>('all');
  const problems = batch.lines.filter(({ problem }) => problem !== undefined);
  const rows = view === 'problems' && problems.length ? problems : batch.lines;
  const { shown, left, showMore } = useShown(rows, FIRST);
  const wide = batch.columns?.includes('priority') ?? false;
  return (
    <section className="card" aria-labelledby="preview">
      <div className="card-head">
        <h2 id="preview">{strings.preview}</h2>
        {batch.lines.length > 0 && (
          <span className="small faint num">{count(batch.lines.length)}</span>
        )}
        {problems.length > 0 && (
          <span className="push">
            <Segments
              label={strings.views}
              options={[
                { name: 'all', label: strings.all },
                { name: 'problems', label: `${strings.withProblem} ${count(problems.length)}` },
              ]}
              selected={view}
              onSelect={setView}
            />
          </span>
        )}
      </div>
      {batch.lines.length === 0 ? (
        <p className="card-pad soft">{batch.columns ? strings.noRows : strings.previewEmpty}</p>
      ) : (
        <table className="table table-batch">
          <thead>
            <tr>
              <th scope="col" className="end">
                {columns.line}
              </th>
              <th scope="col">{columns.name}</th>
              <th scope="col">{columns.input}</th>
              {wide && (
                <th scope="col" className="end">
                  {columns.priority}
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.map((line) => (
              <Row key={line.number} line={line} wide={wide} />
            ))}
          </tbody>
        </table>
      )}
      <MoreRows left={left} onMore={showMore} />
    </section>
  );
}
