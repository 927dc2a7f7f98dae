/** What a stream of events yields. */
import { UnreadableResponseError } from './errors.ts';
import type { Event, TaskStatus } from './generated/types.gen.ts';
import type { Json } from './options.ts';
import type { Message } from './sse.ts';

const ENDED: readonly TaskStatus[] = ['COMPLETED', 'FAILED', 'CANCELLED'];

/** Whether a task in this state has ended. Only a failed one can start again, by a retry. */
export const hasEnded = (status: unknown): boolean => ENDED.includes(status as TaskStatus);

interface Text {
  run: number;
  step: number;
  text: string;
}

/** Text that a model has just written. Append it to the text of its run and step. */
export interface TextDelta extends Text {
  type: 'delta';
}

/** The whole text of a step so far. It replaces what arrived before. */
export interface TextSnapshot extends Text {
  type: 'text';
}

/** An event, or a text of a model: only texts have `text`. */
export type TaskEvent = Event | TextDelta | TextSnapshot;

/** The event of a message. Null for a kind that this version does not know. */
export function decoded(message: Message, json: Json): TaskEvent | null {
  const { id, event } = message;
  if (id !== null) return decodedEvent(message, json);
  if (event !== 'delta' && event !== 'text') return null;
  return { type: event, ...read<Text>(message, 'text', json) } as TextDelta | TextSnapshot;
}

/** The event of a message of an account's stream, which has no texts. */
export const decodedEvent = (message: Message, json: Json): Event | null =>
  message.id === null ? null : read<Event>(message, 'sequence', json);

function read<T>(message: Message, field: string & keyof T, json: Json): T {
  try {
    const found = json.parse(message.data) as T | null;
    if (found?.[field] !== undefined) return found;
  } catch {
    // The error below says it.
  }
  throw new UnreadableResponseError(
    'This version of the SDK cannot read an event. Update @rota/sdk.',
  );
}
