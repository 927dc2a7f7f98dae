/** Streams of events that survive any interruption: every event arrives once and in order. */
import { APIConnectionError, UnreadableResponseError } from './errors.ts';
import { hasEnded, type TaskEvent } from './events.ts';
import { accountEvents, getTask } from './generated/operations.gen.ts';
import type { Event } from './generated/types.gen.ts';
import type { ApiRequest } from './request.ts';
import { backoffMs, delayMs, pause } from './retries.ts';
import { Decoder, type Message } from './sse.ts';
import { Deadline } from './timeouts.ts';
import type { Transport } from './transport.ts';

/** The service sends something every 15 s, so a stream that is silent for longer is dead. */
const SILENCE_MS = 40_000;
/**
 * How often in a row a stream that was open fails to connect again before it gives up. Together with
 * the time between the attempts, this is more than a minute. Connections that open and break later are
 * not counted: a task can wait for a person for hours, and a proxy can cut streams all the time.
 */
const RECONNECTS = 20;
/** A cut connection is the usual case, so the first attempt comes soon. */
const FIRST_MS = 100;
/** A connection that was open for so long did not fail at once, so the next attempt comes soon again. */
const STEADY_MS = 10_000;

export interface FollowOptions {
  /** Continues after the event with this sequence number. */
  after?: number | undefined;
  /** Ends the stream. */
  signal?: AbortSignal | undefined;
  /** Whether a stream that was cut connects again. Default: true. */
  reconnect?: boolean | undefined;
  /** Called each time that a connection is open. */
  onOpen?: (() => void) | undefined;
}

/** What differs between the streams of a task and of an account. */
interface Source<E extends TaskEvent> {
  request: ApiRequest;
  decode(message: Message): E | null;
  /** Where a stream without a number begins. Null: with the first event. */
  begin(): Promise<number | null>;
  /** Whether the stream ends after an event with this state of a task. */
  endsWith(status: unknown): boolean;
  /** Whether nothing more can come after the events that are stored now. */
  isOver(): Promise<boolean>;
}

/** Events as they happen, for one `for await`. Leaving the loop closes the connection. */
export class EventStream<E extends TaskEvent> implements AsyncIterable<E> {
  /** The sequence number of the last event. Store it to continue after it later. */
  lastSequence: number | null;
  readonly #transport: Transport;
  readonly #source: Source<E>;
  readonly #options: FollowOptions;
  readonly #events: AsyncGenerator<E, void, undefined>;
  #status: unknown = null;
  /** How many connections in a row brought no event. */
  #idle = 0;

  constructor(transport: Transport, source: Source<E>, options: FollowOptions) {
    this.#transport = transport;
    this.#source = source;
    this.#options = options;
    this.lastSequence = options.after ?? null;
    this.#events = options.reconnect === false ? this.#once() : this.#follow();
  }

  [Symbol.asyncIterator](): AsyncGenerator<E, void, undefined> {
    return this.#events;
  }

  async *#follow(): AsyncGenerator<E, void, undefined> {
    const { signal } = this.#options;
    this.lastSequence ??= await this.#source.begin();
    let limit = this.#transport.settings.maxRetries;
    let refused = 0;
    let isOver = false;
    const opened = () => {
      limit = RECONNECTS;
      refused = 0;
    };
    for (;;) {
      const started = performance.now();
      let waitMs: number;
      try {
        for await (const event of this.#once(opened)) {
          this.#idle = 0;
          yield event;
        }
        // The service ended the stream: because nothing more can come, or because it stops.
        if (isOver || this.#source.endsWith(this.#status)) return;
        isOver = await this.#source.isOver();
        waitMs = isOver ? 0 : this.#pauseMs(started);
      } catch (error) {
        const againMs = delayMs(error, this.#idle, true);
        if (againMs === null || refused >= limit) throw error;
        refused += 1;
        waitMs = error instanceof APIConnectionError ? this.#pauseMs(started) : againMs;
      }
      this.#idle += 1;
      await pause(waitMs, signal, true);
    }
  }

  /** How long to wait after a connection that broke. */
  #pauseMs(started: number): number {
    if (performance.now() - started > STEADY_MS) this.#idle = 0;
    return backoffMs(this.#idle, FIRST_MS);
  }

  /** The new events of one connection. */
  async *#once(opened?: () => void): AsyncGenerator<E, void, undefined> {
    for await (const message of this.#messages(opened)) {
      const event = this.#take(message);
      if (event) yield event;
    }
  }

  async *#messages(opened?: () => void): AsyncGenerator<Message, void, undefined> {
    const { signal, onOpen } = this.#options;
    const { request } = this.#source;
    const deadline = new Deadline(Math.min(this.#transport.settings.timeoutMs, SILENCE_MS), signal);
    // A network that is gone does not end a stream by itself.
    globalThis.addEventListener?.('offline', deadline.cut);
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    try {
      const response = await this.#transport.fetch(
        request,
        {
          ...request.headers,
          Accept: 'text/event-stream',
          ...(this.lastSequence === null ? {} : { 'Last-Event-ID': String(this.lastSequence) }),
        },
        deadline,
      );
      if (!response.ok) throw this.#transport.errorOf(response, await response.text());
      const kind = response.headers.get('Content-Type') ?? '';
      if (!response.body || !kind.startsWith('text/event-stream')) {
        throw new UnreadableResponseError('The response is not a stream of events. Check baseUrl.');
      }
      deadline.restart(SILENCE_MS);
      opened?.();
      onOpen?.();
      reader = response.body.getReader();
      const texts = new TextDecoder();
      const decoder = new Decoder();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        deadline.restart(SILENCE_MS);
        yield* decoder.feed(texts.decode(value, { stream: true }));
      }
    } catch (error) {
      throw this.#transport.failure(error, deadline, signal);
    } finally {
      deadline.clear();
      globalThis.removeEventListener?.('offline', deadline.cut);
      deadline.cut();
      reader?.cancel().catch(() => undefined);
    }
  }

  /** The event of a message, if it is new. */
  #take(message: Message): E | null {
    const event = this.#source.decode(message);
    if (event && 'sequence' in event) {
      if (this.lastSequence !== null && event.sequence <= this.lastSequence) return null;
      this.lastSequence = event.sequence;
      this.#status = event.data.status ?? this.#status;
    }
    return event;
  }
}

/** The events of one task. They end when the task is completed, failed or cancelled. */
export const taskStream = (
  transport: Transport,
  request: ApiRequest,
  decode: (message: Message) => TaskEvent | null,
  id: string,
  options: FollowOptions,
): EventStream<TaskEvent> =>
  new EventStream(
    transport,
    {
      request,
      decode,
      begin: async () => null,
      endsWith: hasEnded,
      isOver: async () => {
        const { task } = await transport.call(getTask, { path: { id } }, options);
        return hasEnded(task.status);
      },
    },
    options,
  );

/** The events of an account. They have no end. */
export const accountStream = (
  transport: Transport,
  request: ApiRequest,
  decode: (message: Message) => Event | null,
  options: FollowOptions,
): EventStream<Event> =>
  new EventStream(
    transport,
    {
      request,
      decode,
      // A stream without a number begins with the next event, at each connection. So the number of
      // the newest event is read once, and nothing is missing after a reconnect.
      begin: async () => {
        const query = { after: Number.MAX_SAFE_INTEGER };
        return (await transport.call(accountEvents, { query }, options)).lastSequence;
      },
      endsWith: () => false,
      isOver: async () => false,
    },
    options,
  );
