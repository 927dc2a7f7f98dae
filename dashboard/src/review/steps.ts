/** The steps that led to a review, in words made by rule. */
import type { TimelineStep } from '@rota/sdk';
import type { Json } from '../api/exact';
import { readable } from './schema';
import { strings } from './strings';

const SHOWN = 8;

export interface LedStep {
  id: string;
  icon: 'model' | 'tool' | 'person';
  words: string;
  /** The tool with its server, or the tools that the model requested. */
  code: string | null;
  /** What can be opened. */
  detail: { asked: Json; answered: Json } | null;
  costUsd: string;
}

function toolCallsOf(result: unknown): string[] {
  const calls = (result as { toolCalls?: unknown } | null)?.toolCalls;
  return Array.isArray(calls) ? calls.filter((call) => typeof call === 'string') : [];
}

function wordsOf(step: TimelineStep): string {
  if (step.kind === 'tool') {
    const name = readable(step.name ?? '');
    return step.outcome === 'failed' ? strings.failedStep(name) : name;
  }
  if (step.kind === 'approval') {
    const state = step.state === 'approved' || step.state === 'rejected' ? step.state : null;
    return state ? strings.states[state] : strings.decisionStep;
  }
  if (step.kind === 'summary') return strings.summaryStep;
  return toolCallsOf(step.result).length ? strings.choseTools : strings.modelStep;
}

function codeOf(step: TimelineStep): string | null {
  if (step.kind === 'tool') return [step.server, step.name].filter(Boolean).join('/');
  const calls = new Set(toolCallsOf(step.result).map((name) => name.split(/\/|__/).at(-1) ?? name));
  return [...calls].slice(0, 3).join(', ') || null;
}

function detailOf(step: TimelineStep): LedStep['detail'] {
  if (step.kind === 'approval') return null;
  if (step.kind === 'tool') {
    return { asked: step.arguments as Json, answered: step.result as Json };
  }
  const words = (step.result as { text?: unknown } | null)?.text;
  return typeof words === 'string' && words.trim() ? { asked: null, answered: words } : null;
}

/** The last finished steps of the newest run, and how many came before them. */
export function ledHere(
  steps: TimelineStep[],
  total: number,
): { shown: LedStep[]; earlier: number } {
  const run = steps.at(-1)?.run;
  const finished = steps.filter(
    (step) =>
      step.run === run &&
      (step.kind === 'approval' ? step.decidedBy !== null : step.finishedAt !== null),
  );
  const shown = finished.slice(-SHOWN);
  const unseen = Math.max(0, total - steps.length);
  return {
    shown: shown.map((step) => ({
      id: step.id,
      icon: step.kind === 'approval' ? 'person' : step.kind === 'tool' ? 'tool' : 'model',
      words: wordsOf(step),
      code: codeOf(step),
      detail: detailOf(step),
      costUsd: step.costUsd,
    })),
    earlier: unseen + finished.length - shown.length,
  };
}
