/**
 * The account's event stream. Browsers open only six HTTP/1.1 connections, so the tabs of a
 * browser share one stream: the tab that holds the lock reads it and passes events on. A phone
 * stops tabs that are not seen, with their locks, so a tab that gets no answer takes the lock.
 */
import { type Event, errors } from '@rota/sdk';
import { api } from '../api/client';

/** `refused`: the caller cannot read the account any more. */
export type Connection = 'connecting' | 'live' | 'offline' | 'refused';

interface Shared {
  event?: Event;
  connection?: Connection;
  /** The stream starts without an event to resume from, for the first time or after a cut. */
  start?: 'first' | 'again';
  /** A tab that opened later asks for the state of the connection. */
  ask?: true;
}

/** The tab that reads the stream answers within this time, if it is not stopped. */
const ANSWER_MS = 3_000;
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

export class LiveEvents {
  connection: Connection = 'connecting';
  private listeners = new Set<() => void>();
  private name: string;
  private channel: BroadcastChannel;
  /** Ends when this tab neither holds the lock nor waits for it any more. */
  private turn = new AbortController();
  private leads = false;
  private answered = false;
  private unanswered: ReturnType<typeof setTimeout> | undefined;
  private wasOpen = false;
  private last: number | undefined;

  constructor(
    account: string,
    private onEvent: (event: Event) => void,
    private onStart: (start: 'first' | 'again') => void,
  ) {
    this.name = `rota.events.${account}`;
    this.channel = new BroadcastChannel(this.name);
    this.channel.onmessage = ({ data }: MessageEvent<Shared>) => {
      if (!data.ask) this.answered = true;
      this.receive(data);
    };
    document.addEventListener('visibilitychange', this.ask);
    this.claim();
    this.ask();
  }

  close(): void {
    this.turn.abort();
    this.channel.close();
    clearTimeout(this.unanswered);
    document.removeEventListener('visibilitychange', this.ask);
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private claim(steal = false): void {
    this.turn.abort();
    const turn = new AbortController();
    this.turn = turn;
    navigator.locks
      .request(this.name, steal ? { steal } : { signal: turn.signal }, () => this.lead(turn.signal))
      .catch(() => {
        // Another tab took the lock. This one waits until it is free again.
        if (!turn.signal.aborted) this.claim();
      });
  }

  /** Asks the tab that reads the stream, and takes its place if it does not answer. */
  private ask = () => {
    clearTimeout(this.unanswered);
    if (this.leads) return;
    this.answered = false;
    this.channel.postMessage({ ask: true } satisfies Shared);
    this.unanswered = setTimeout(() => {
      if (!this.answered && !this.leads && !document.hidden) this.claim(true);
    }, ANSWER_MS);
  };

  private receive(shared: Shared): void {
    if (shared.ask && this.leads) this.channel.postMessage({ connection: this.connection });
    if (shared.connection) this.setConnection(shared.connection);
    // A tab that was stopped has missed what happened before another tab started anew.
    if (shared.start) this.onStart(this.last === undefined ? shared.start : 'again');
    if (shared.event) {
      // Every tab remembers it: the one that reads next resumes here.
      this.last = shared.event.sequence;
      this.onEvent(shared.event);
    }
  }

  private async lead(signal: AbortSignal): Promise<void> {
    this.leads = true;
    signal.addEventListener('abort', () => {
      this.leads = false;
    });
    let failures = 0;
    while (!signal.aborted) {
      let refused = false;
      try {
        await this.read(signal, () => {
          failures = 0;
        });
      } catch (error) {
        // The next attempt says whether the service is back.
        refused = error instanceof errors.PermissionDeniedError;
      }
      if (signal.aborted) return;
      const isCut = failures > 0 || !navigator.onLine;
      this.share({ connection: refused ? 'refused' : isCut ? 'offline' : 'connecting' });
      await pauseAfter(failures, signal);
      failures += 1;
    }
  }

  private async read(signal: AbortSignal, opened: () => void): Promise<void> {
    const stream = api.events.follow({
      after: this.last,
      signal,
      // The tabs decide among themselves which of them connects again.
      reconnect: false,
      onOpen: () => {
        opened();
        this.share({ connection: 'live' });
        // With an event to resume from, the stream sends what was missed. Without one, it starts
        // with the next event.
        if (this.last === undefined) this.share({ start: this.wasOpen ? 'again' : 'first' });
        this.wasOpen = true;
      },
    });
    for await (const event of stream) this.share({ event });
  }

  private share(shared: Shared): void {
    this.channel.postMessage(shared);
    this.receive(shared);
  }

  private setConnection(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    for (const listener of this.listeners) listener();
  }
}

/** The pause before the next attempt. Ends early when the network is back. */
export function pauseAfter(failures: number, signal: AbortSignal): Promise<void> {
  return pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 10_000, signal);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      removeEventListener('online', done);
      signal.removeEventListener('abort', done);
      resolve();
    }
    addEventListener('online', done);
    signal.addEventListener('abort', done);
  });
}
