/** What waits, in groups of the same kind, so that several can be decided together. */
import type { Approval } from '@rota/sdk';
import { readable } from '../review/schema';
import { strings } from './strings';

export interface Group {
  key: string;
  /** What the reviews of the group ask for, in a few words. */
  words: string;
  approvals: Approval[];
}

/** The same agent wants the same thing of the same server. */
export function kindOf({ task, review }: Approval): string {
  const calls = review.items.map((item) => [item.serverId ?? item.server ?? null, item.tool]);
  return JSON.stringify([review.gate, task.assignedAgent, calls]);
}

function wordsOf({ review }: Approval): string {
  const [only, ...more] = review.items;
  if (review.gate === 'run') return strings.kinds.run;
  if (review.gate === 'output') return strings.kinds.output;
  if (!only || review.gate === null) return strings.kinds.external;
  if (more.length) return strings.kinds.several;
  const words = only.toolTitle ?? readable(only.tool ?? '');
  return words.charAt(0).toLowerCase() + words.slice(1);
}

/** The words for a decision about all of them. Results are accepted, everything else is approved. */
export function decisionWords(how: 'approve' | 'reject', approvals: Approval[]) {
  if (how === 'reject') return strings.reject;
  return approvals.every(({ review }) => review.gate === 'output')
    ? strings.accept
    : strings.approve;
}

/** Oldest first. A group stands where its oldest review does. */
export function groupsOf(approvals: Approval[]): Group[] {
  const groups = new Map<string, Group>();
  for (const approval of approvals) {
    const key = kindOf(approval);
    const group = groups.get(key);
    if (group) group.approvals.push(approval);
    else groups.set(key, { key, words: wordsOf(approval), approvals: [approval] });
  }
  return [...groups.values()];
}

export const isSnoozed = (approval: Approval, now: number): boolean =>
  approval.snoozedUntil !== null &&
  approval.snoozedUntil !== undefined &&
  Date.parse(approval.snoozedUntil) > now;
