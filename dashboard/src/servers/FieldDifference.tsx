import type { DefinitionChange } from '@rota/sdk';
import { useMemo } from 'react';
import { type Change, diff, lines, runs, words as splitWords } from '../ui/diff';
import { SafeText } from '../ui/SafeText';
import { isText, shownValue } from './definition';
import { strings } from './strings';

const { changed: words } = strings;

/** A field of a definition: accepted at the left, offered now at the right. */
export function FieldDifference({ change, isNew }: { change: DefinitionChange; isNew: boolean }) {
  const accepted = shownValue(change.accepted);
  const live = shownValue(change.live);
  const text = isText(change);
  const parts = useMemo(() => {
    const split = text ? splitWords : lines;
    return diff(split(accepted ?? ''), split(live ?? ''));
  }, [accepted, live, text]);
  return (
    <div className="field-diff" data-new={isNew || undefined}>
      <p className="field-name">{change.field}</p>
      {!isNew && (
        <Side name={words.accepted} gone={accepted === null}>
          <Parts parts={parts} kind="removed" text={text} />
        </Side>
      )}
      <Side name={words.live} gone={live === null}>
        {isNew ? (
          <SafeText>{live ?? ''}</SafeText>
        ) : (
          <Parts parts={parts} kind="added" text={text} />
        )}
      </Side>
    </div>
  );
}

function Side({
  name,
  gone,
  children,
}: {
  name: string;
  gone: boolean;
  children: React.ReactNode;
}) {
  return (
    <div className="side">
      <p className="tiny faint">{name}</p>
      {gone ? (
        <p className="small faint">{words.nothing}</p>
      ) : (
        <pre className="side-text">{children}</pre>
      )}
    </div>
  );
}

/** One side of a difference: what is the same, and what only this side has. */
function Parts({
  parts,
  kind,
  text,
}: {
  parts: Change[];
  kind: 'removed' | 'added';
  text: boolean;
}) {
  const own = parts.filter((part) => part.kind === 'same' || part.kind === kind);
  const Mark = kind === 'removed' ? 'del' : 'ins';
  // Lines lost their ends when they were split, words lost nothing.
  const joined = runs(own.map((part) => (text ? part : { ...part, text: `${part.text}\n` })));
  return joined.map((part, at) =>
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
}
