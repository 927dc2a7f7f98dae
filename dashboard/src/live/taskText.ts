/** The text that a model writes for a task: `text` replaces it, and `delta` adds to it. */
import type { Event } from '@rota/sdk';
import type { Message } from './sse';

export interface StepText {
  run: number;
  step: number;
  text: string;
  /** The model is still writing. */
  writes: boolean;
}

type Piece = Pick<StepText, 'run' | 'step' | 'text'>;

const isSame = (a: StepText, b: { run: number; step: number }): boolean =>
  a.run === b.run && a.step === b.step;

const isEarlier = (a: { run: number; step: number }, b: StepText): boolean =>
  a.run < b.run || (a.run === b.run && a.step < b.step);

/** The newest text after this message. Texts of earlier steps are in the timeline. */
export function withMessage(shown: StepText | null, message: Message): StepText | null {
  if (message.event === 'text' || message.event === 'delta') {
    const piece = JSON.parse(message.data) as Piece;
    if (shown && isEarlier(piece, shown)) return shown;
    const before = shown && message.event === 'delta' && isSame(shown, piece) ? shown.text : '';
    return { run: piece.run, step: piece.step, text: before + piece.text, writes: true };
  }
  if (message.event === 'step.finished' && shown) {
    const { data } = JSON.parse(message.data) as Event;
    const place = data as { run: number; step: number; kind: string };
    if (place.kind === 'model' && isSame(shown, place)) return { ...shown, writes: false };
  }
  return shown;
}
