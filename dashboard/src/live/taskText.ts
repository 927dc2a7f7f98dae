/** The text that a model writes for a task: `text` replaces it, and `delta` adds to it. */
import type { TaskEvent } from '@rota/sdk';

export interface StepText {
  run: number;
  step: number;
  text: string;
  /** The model is still writing. */
  writes: boolean;
}

const isSame = (a: StepText, b: { run: number; step: number }): boolean =>
  a.run === b.run && a.step === b.step;

const isEarlier = (a: { run: number; step: number }, b: StepText): boolean =>
  a.run < b.run || (a.run === b.run && a.step < b.step);

/** The newest text after this event. Texts of earlier steps are in the timeline. */
export function withEvent(shown: StepText | null, event: TaskEvent): StepText | null {
  if ('text' in event) {
    if (shown && isEarlier(event, shown)) return shown;
    const before = shown && event.type === 'delta' && isSame(shown, event) ? shown.text : '';
    return { run: event.run, step: event.step, text: before + event.text, writes: true };
  }
  if (event.type === 'step.finished' && shown) {
    const place = event.data as { run: number; step: number; kind: string };
    if (place.kind === 'model' && isSame(shown, place)) return { ...shown, writes: false };
  }
  return shown;
}
