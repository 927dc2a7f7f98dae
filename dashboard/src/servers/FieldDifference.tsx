import type { DefinitionChange } from '@rota/sdk';
import { type ReactNode, useMemo } from 'react';
import { diff, runs, words as splitWords } from '../ui/diff';
import { SafeText } from '../ui/SafeText';
import { isText, shownValue } from './definition';
import { LinePairs } from './LinePairs';
import { strings } from './strings';

const { changed: words } = strings;

/** A field of a definition: accepted at the left, offered now at the right. */
export function FieldDifference({ change, isNew }: { change: DefinitionChange; isNew: boolean }) {
  const accepted = shownValue(change.accepted);
  const live = shownValue(change.live);
  if (isNew) {
    if (live === null) return null;
    return (
      <div className="field-diff" data-new>
        <p className="field-name">{change.field}</p>
        <pre className="side-text">
          <SafeText>{live}</SafeText>
        </pre>
      </div>
    );
  }
  if (isText(change)) {
    return <WordDifference field={change.field} accepted={accepted} live={live} />;
  }
  return <LinePairs field={change.field} accepted={accepted ?? ''} live={live ?? ''} />;
}

function WordDifference({
  field,
  accepted,
  live,
}: {
  field: string;
  accepted: string | null;
  live: string | null;
}) {
  const parts = useMemo(
    () => diff(splitWords(accepted ?? ''), splitWords(live ?? '')),
    [accepted, live],
  );
  const side = (kind: 'removed' | 'added') => {
    const Mark = kind === 'removed' ? 'del' : 'ins';
    return runs(parts.filter((part) => part.kind === 'same' || part.kind === kind)).map(
      (part, at) =>
        part.kind === 'same' ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity, and no state.
          <SafeText key={at}>{part.text}</SafeText>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: see above.
          <Mark key={at}>
            <SafeText>{part.text}</SafeText>
          </Mark>
        ),
    );
  };
  return (
    <div className="field-diff">
      <p className="field-name">{field}</p>
      <Side name={words.accepted}>{accepted !== null && side('removed')}</Side>
      <Side name={words.live}>{live !== null && side('added')}</Side>
    </div>
  );
}

function Side({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="side">
      <p className="tiny faint">{name}</p>
      {children ? (
        <pre className="side-text">{children}</pre>
      ) : (
        <p className="small faint">{words.nothing}</p>
      )}
    </div>
  );
}
