/** Streams of events that survive any interruption: every event arrives once and in order. */
import { APIConnectionError, RateLimitError } from './errors.ts';
import { hasEnded, type TaskEvent } from './events.ts';
import { accountEvents, getTask, me } from './generated/operations.gen.ts';
import type { Json } from './options.ts';
import type { ApiRequest } from './request.ts';
import { backoffMs, delayMs, maxFailures, pause } from './retries.ts';
import { Decoder, type Message } from './sse.ts';
import { Transport } from './transport.ts';

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

/** Events as they happen, for one `for await`. Leaving the loop closes the connection. */
export class EventStream<E extends TaskEvent> implements AsyncIterable<E> {
  /** The sequence number of the last event. Store it to continue after it later. */
  lastSequence: number | null;
  readonly #transport: Transport;
  readonly #request: ApiRequest;
  readonly #decode: (message: Message, json: Json) => E | null;
  readonly #options: FollowOptions;
  readonly #task: string | undefined;
  readonly #events: AsyncGenerator<E, void, undefined>;
  #begun: Promise<void> | undefined;
  #wasOpen = false;
  #status: unknown;
  /** How many connections in a row brought no event. */
  #idle = 0;
  /**
   * How many attempts in a row opened no connection. Connections that open and break later are not
   * counted: a task can wait for a person for hours, and a proxy can cut streams all the time.
   */
  #refused = 0;

  /** The events of a task end with it. Without a task, they are those of the account and have no end. */
  constructor(
    transport: Transport,
    request: ApiRequest,
    decode: (message: Message, json: Json) => E | null,
    options: FollowOptions,
    task?: string,
  ) {
    this.#transport = transport;
    this.#request = request;
    this.#decode = decode;
    this.#options = options;
    this.#task = task;
    this.lastSequence = options.after ?? null;
    this.#events = options.reconnect === false ? this.#once() : this.#follow();
  }

  [Symbol.asyncIterator](): AsyncGenerator<E, void, undefined> {
    return this.#events;
  }

  /**
   * Resolves when the stream knows where it begins: every event after that arrives. Without it, the
   * events of an account begin when the first one is asked for.
   */
  ready(): Promise<void> {
    this.#begun ??= this.#begin();
    return this.#begun;
  }

  async #begin(): Promise<void> {
    if (this.#task) return;
    let transport = this.#transport;
    try {
      // After a removal, this could be another company.
      if (transport.settings.account === 'company') {
        const { account } = await transport.call(me, {}, this.#options);
        this.#request.headers['X-Service-Account'] = account.id;
        transport = new Transport({ ...transport.settings, account: account.id });
      }
      // A stream without a number begins with the next event, at each connection. So the number of
      // the newest event is read once, and nothing is missing after a reconnect.
      const query = { after: Number.MAX_SAFE_INTEGER };
      this.lastSequence ??= (
        await transport.call(accountEvents, { query }, this.#options)
      ).lastSequence;
    } catch (error) {
      this.#begun = undefined;
      throw error;
    }
  }

  async *#follow(): AsyncGenerator<E, void, undefined> {
    const id = this.#task;
    let isOver = false;
    for (;;) {
      const started = performance.now();
      try {
        await this.ready();
        for await (const event of this.#once()) {
          this.#idle = 0;
          isOver = false;
          yield event;
        }
        // The service ended the stream: because nothing more can come, or because it stops.
        if (id && (isOver || hasEnded(this.#status))) return;
        // Events that were stored before the end can still come.
        if (id) {
          const { task } = await this.#transport.call(getTask, { path: { id } }, this.#options);
          isOver = hasEnded(task.status);
        }
        if (!isOver) await this.#pause(this.#pauseMs(started), true);
      } catch (error) {
        await this.#recover(error, started);
      }
    }
  }

  /** Waits after an error. Throws it if another attempt does not help. */
  async #recover(error: unknown, started: number): Promise<void> {
    const { maxRetries } = this.#transport.settings;
    const isFull = error instanceof RateLimitError;
    const limit = this.#wasOpen ? maxFailures(1) : isFull ? maxRetries : maxFailures(maxRetries);
    const againMs = delayMs(error, this.#idle, true);
    if (againMs === null || this.#refused >= limit) throw error;
    this.#refused += 1;
    const isCut = error instanceof APIConnectionError;
    // Only a wait that the service did not ask for ends early.
    await this.#pause(isCut ? this.#pauseMs(started) : againMs, isCut);
  }

  #pause(ms: number, online: boolean): Promise<void> {
    this.#idle += 1;
    return pause(ms, this.#options.signal, online);
  }

  /** How long to wait after a connection that broke. */
  #pauseMs(started: number): number {
    if (performance.now() - started > STEADY_MS) this.#idle = 0;
    return backoffMs(this.#idle, FIRST_MS);
  }

  /** The new events of one connection. */
  async *#once(): AsyncGenerator<E, void, undefined> {
    for await (const message of this.#messages()) {
      if (!message) {
        this.#wasOpen = true;
        this.#refused = 0;
        this.#options.onOpen?.();
        continue;
      }
      const event = this.#take(message);
      if (event) yield event;
    }
  }

  /** What one connection brings: null when it is open, and then its messages. */
  async *#messages(): AsyncGenerator<Message | null, void, undefined> {
    const after = this.lastSequence;
    const pieces = this.#transport.stream(
      this.#request,
      'text/event-stream',
      after === null ? {} : { 'Last-Event-ID': String(after) },
      this.#options.signal,
    );
    const texts = new TextDecoder();
    const decoder = new Decoder();
    let isOpen = false;
    for await (const piece of pieces) {
      if (!isOpen) {
        isOpen = true;
        yield null;
      }
      yield* decoder.feed(texts.decode(piece, { stream: true }));
    }
  }

  /** The event of a message, if it is new. */
  #take(message: Message): E | null {
    const event = this.#decode(message, this.#transport.settings.json);
    if (event && 'sequence' in event) {
      if (this.lastSequence !== null && event.sequence <= this.lastSequence) return null;
      this.lastSequence = event.sequence;
      this.#status = event.data.status ?? this.#status;
    }
    return event;
  }
}
