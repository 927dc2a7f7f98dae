import { useMemo, useState } from 'react';
import { Button } from '../ui/Button';
import { aligned, type Change, diff, fold, lines, type Pair } from '../ui/diff';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

const { changed: words } = strings;
type Row = Pair | { folded: number };

/** Unchanged lines far from a change are folded, unless `all` of them are wanted. */
function rows(changes: Change[], all: boolean): Row[] {
  if (all) return aligned(changes);
  const found: Row[] = [];
  let open: Change[] = [];
  for (const each of fold(changes)) {
    if (each.kind === 'fold') {
      found.push(...aligned(open), { folded: each.count });
      open = [];
    } else {
      open.push(each);
    }
  }
  return [...found, ...aligned(open)];
}

/** JSON line by line, in two columns. */
export function LinePairs({
  field,
  accepted,
  live,
}: {
  field: string;
  accepted: string;
  live: string;
}) {
  const [all, setAll] = useState(false);
  const changes = useMemo(() => diff(lines(accepted), lines(live)), [accepted, live]);
  const folded = rows(changes, false);
  const shown = all ? rows(changes, true) : folded;
  return (
    <div className="field-diff">
      <p className="field-name row">
        {field}
        {folded.some((row) => 'folded' in row) && (
          <Button size="s" look="quiet" className="push" onClick={() => setAll(!all)}>
            {all ? words.showChanges : words.showAll}
          </Button>
        )}
      </p>
      <div className="pair-lines">
        <table>
          <thead>
            <tr>
              <th scope="col">{words.accepted}</th>
              <th scope="col">{words.live}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row, at) =>
              'folded' in row ? (
                // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity, no state.
                <tr key={at}>
                  <td colSpan={2} className="folded">
                    {words.unchanged(row.folded)}
                  </td>
                </tr>
              ) : (
                // biome-ignore lint/suspicious/noArrayIndexKey: see above.
                <tr key={at}>
                  <Cell change={row.before} />
                  <Cell change={row.after} right />
                </tr>
              ),
            )}
          </tbody>
        </table>
      </div>
    </div>
  );
}

/** Where there is room for one column only, a line that is the same stands there once. */
function Cell({ change, right }: { change: Change | null; right?: boolean }) {
  if (!change) return <td className="blank" />;
  const text = <SafeText>{change.text}</SafeText>;
  if (change.kind === 'same') return <td className={right ? 'again' : undefined}>{text}</td>;
  return change.kind === 'removed' ? (
    <td className="gone">
      <del>{text}</del>
    </td>
  ) : (
    <td className="came">
      <ins>{text}</ins>
    </td>
  );
}
