/** What differs between two lists of lines or words, by their longest common part. */
export interface Change {
  kind: 'same' | 'removed' | 'added';
  text: string;
  /** Where it was, from 0. Null for what was added. */
  before: number | null;
  /** Where it is, from 0. Null for what was removed. */
  after: number | null;
}

/** Above this, the middle is shown as replaced: a table for it would take too much memory. */
const MAX_CELLS = 4_000_000;

export function diff(before: string[], after: string[]): Change[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start++;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end++;
  }
  const same = (from: number, to: number, at: number): Change[] =>
    before
      .slice(from, to)
      .map((text, i) => ({ kind: 'same', text, before: from + i, after: at + i }));
  return [
    ...same(0, start, 0),
    ...middle(before.slice(start, before.length - end), after.slice(start, after.length - end)).map(
      (change) => ({
        ...change,
        before: change.before === null ? null : change.before + start,
        after: change.after === null ? null : change.after + start,
      }),
    ),
    ...same(before.length - end, before.length, after.length - end),
  ];
}

function middle(before: string[], after: string[]): Change[] {
  const removed = (i: number): Change => ({
    kind: 'removed',
    text: before[i] ?? '',
    before: i,
    after: null,
  });
  const added = (j: number): Change => ({
    kind: 'added',
    text: after[j] ?? '',
    before: null,
    after: j,
  });
  const width = after.length + 1;
  if (!before.length || !after.length || (before.length + 1) * width > MAX_CELLS) {
    return [...before.map((_, i) => removed(i)), ...after.map((_, j) => added(j))];
  }
  // The length of the longest common part of what follows each pair of places.
  const common = new Uint32Array((before.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const changes: Change[] = [];
  let i = 0;
  let j = 0;
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      changes.push({ kind: 'same', text: before[i] ?? '', before: i++, after: j++ });
    } else if (i < before.length && (j === after.length || at(i + 1, j) >= at(i, j + 1))) {
      changes.push(removed(i++));
    } else {
      changes.push(added(j++));
    }
  }
  return changes;
}

export const lines = (text: string): string[] => (text ? text.split('\n') : []);

/** Words and the space between them, so that joining them gives the text again. */
export const words = (text: string): string[] => text.match(/\s+|\S+/g) ?? [];

/** Neighbours of one kind as one piece of text. */
export function runs(changes: Change[]): Pick<Change, 'kind' | 'text'>[] {
  const joined: Pick<Change, 'kind' | 'text'>[] = [];
  for (const { kind, text } of changes) {
    const last = joined.at(-1);
    if (last?.kind === kind) last.text += text;
    else joined.push({ kind, text });
  }
  return joined;
}

export interface Fold {
  kind: 'fold';
  count: number;
}

/** Leaves out what is the same, except `context` lines beside each change. */
export function fold(changes: Change[], context = 3): (Change | Fold)[] {
  const near = changes.map((_, i) =>
    changes
      .slice(Math.max(0, i - context), i + context + 1)
      .some((change) => change.kind !== 'same'),
  );
  const shown: (Change | Fold)[] = [];
  for (let i = 0; i < changes.length; i++) {
    const change = changes[i];
    const next = near.indexOf(true, i);
    const count = (next < 0 ? changes.length : next) - i;
    // To fold one line would save nothing.
    if (count > 1) {
      shown.push({ kind: 'fold', count });
      i += count - 1;
    } else if (change) {
      shown.push(change);
    }
  }
  return shown;
}

export interface Pair {
  before: Change | null;
  after: Change | null;
}

/** Two columns: what was removed stands beside what was added in its place. */
export function aligned(changes: Change[]): Pair[] {
  const pairs: Pair[] = [];
  let removed: Change[] = [];
  let added: Change[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i++) {
      pairs.push({ before: removed[i] ?? null, after: added[i] ?? null });
    }
    removed = [];
    added = [];
  };
  for (const change of changes) {
    if (change.kind === 'removed') removed.push(change);
    else if (change.kind === 'added') added.push(change);
    else {
      flush();
      pairs.push({ before: change, after: change });
    }
  }
  flush();
  return pairs;
}
