import type { Version } from '@rota/sdk';
import { useMemo, useState } from 'react';
import { Button } from '../ui/Button';
import { type Change, diff, type Fold, fold, lines } from '../ui/diff';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';
import { changedSettings } from './versions';

const { versions: words } = strings;

export function VersionDifference({ before, after }: { before: Version; after: Version }) {
  return (
    <>
      <Settings before={before} after={after} />
      <section className="card" aria-labelledby="compare-instructions">
        {before.instructions === null || after.instructions === null ? (
          <Same>{words.hidden}</Same>
        ) : before.instructions === after.instructions ? (
          <Same>{words.sameInstructions}</Same>
        ) : (
          <Lines before={before.instructions} after={after.instructions} />
        )}
      </section>
    </>
  );
}

function Same({ children }: { children: string }) {
  return (
    <>
      <div className="card-head">
        <h3 id="compare-instructions">{strings.instructions}</h3>
      </div>
      <p className="card-pad-s small soft">{children}</p>
    </>
  );
}

function Settings({ before, after }: { before: Version; after: Version }) {
  const changes = changedSettings(before, after);
  return (
    <section className="card" aria-labelledby="compare-settings">
      <div className="card-head">
        <h3 id="compare-settings">{words.settings}</h3>
      </div>
      {changes.length === 0 ? (
        <p className="card-pad-s small soft">{words.sameSettings}</p>
      ) : (
        <dl className="diff card-pad-s">
          {changes.map((change) => (
            <div key={`${change.name} ${change.before} ${change.after}`} className="diff-row">
              <dt>{change.name}</dt>
              <dd>
                {change.before !== null && (
                  <del>
                    <SafeText>{change.before}</SafeText>
                  </del>
                )}
                {change.before !== null && change.after !== null && (
                  <span className="arrow" aria-hidden="true">
                    →
                  </span>
                )}
                {change.after !== null && (
                  <ins>
                    <SafeText>{change.after}</SafeText>
                  </ins>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

function Lines({ before, after }: { before: string; after: string }) {
  const [all, setAll] = useState(false);
  const changes = useMemo(() => diff(lines(before), lines(after)), [before, after]);
  const folded = useMemo(() => fold(changes), [changes]);
  const shown: (Change | Fold)[] = all ? changes : folded;
  const folds = folded.some((each) => each.kind === 'fold');
  return (
    <>
      <div className="card-head">
        <h3 id="compare-instructions">{strings.instructions}</h3>
        {folds && (
          <span className="push">
            <Button size="s" look="quiet" onClick={() => setAll(!all)}>
              {all ? words.showChanges : words.showAll}
            </Button>
          </span>
        )}
      </div>
      <div className="line-diff">
        {shown.map((line, at) =>
          line.kind === 'fold' ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no identity, and no state.
            <p key={at} className="line line-fold">
              {words.unchanged(line.count)}
            </p>
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: see above.
            <Line key={at} line={line} />
          ),
        )}
      </div>
    </>
  );
}

function Line({ line }: { line: Change }) {
  const text = <SafeText>{line.text}</SafeText>;
  return (
    <p className={`line line-${line.kind}`}>
      <span className="line-no" aria-hidden="true">
        {line.before === null ? '' : line.before + 1}
      </span>
      <span className="line-no" aria-hidden="true">
        {line.after === null ? '' : line.after + 1}
      </span>
      {line.kind === 'same' && <span className="line-text">{text}</span>}
      {line.kind === 'removed' && (
        <span className="line-text">
          <span className="sr">{words.removed1} </span>
          <del>{text}</del>
        </span>
      )}
      {line.kind === 'added' && (
        <span className="line-text">
          <span className="sr">{words.added1} </span>
          <ins>{text}</ins>
        </span>
      )}
    </p>
  );
}
