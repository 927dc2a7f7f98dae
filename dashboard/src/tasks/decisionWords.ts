/** How a decision is told: what was decided, by whom, with how many edits. */
import type { Actor, Gate, TimelineStep } from '@rota/sdk';
import { strings } from './strings';

export function whoDecided(actor: Actor | null): string {
  if (actor?.via === 'rule') return strings.decision.rule(actor.name ?? strings.decision.person);
  if (actor?.name) return actor.name;
  return actor?.via === 'key' ? strings.decision.key : strings.decision.person;
}

export function decisionWord(state: string, actor: Actor | null): string {
  if (state === 'approved') return strings.decision.approved(whoDecided(actor));
  if (state === 'rejected') return strings.decision.rejected(whoDecided(actor));
  if (state === 'expired') return strings.decision.expired;
  if (state === 'cancelled') return strings.decision.cancelled;
  return strings.decision.pending;
}

export const gateWord = (gate: string | null): string | undefined =>
  strings.decision.gate[gate as Gate];

/** How many items of a review were changed before they were approved. */
export function editsOf(step: TimelineStep): number {
  if (!Array.isArray(step.arguments)) return 0;
  return step.arguments.filter((item: { edited?: unknown } | null) => item?.edited === true).length;
}
