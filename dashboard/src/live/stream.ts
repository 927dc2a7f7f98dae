/**
 * The account's event stream. Browsers open only six HTTP/1.1 connections, so the tabs of a
 * browser share one stream: the tab that holds the lock reads it and passes events on.
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

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

export class LiveEvents {
  connection: Connection = 'connecting';
  private listeners = new Set<() => void>();
  private channel: BroadcastChannel;
  private stop = new AbortController();
  private leads = false;
  private wasOpen = false;
  private last: number | undefined;

  constructor(
    account: string,
    private onEvent: (event: Event) => void,
    private onStart: (start: 'first' | 'again') => void,
  ) {
    this.channel = new BroadcastChannel(`rota.events.${account}`);
    this.channel.onmessage = ({ data }: MessageEvent<Shared>) => this.receive(data);
    this.channel.postMessage({ ask: true } satisfies Shared);
    navigator.locks
      .request(`rota.events.${account}`, { signal: this.stop.signal }, () => this.lead())
      .catch(() => undefined);
  }

  close(): void {
    this.stop.abort();
    this.channel.close();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private receive(shared: Shared): void {
    if (shared.ask && this.leads) this.channel.postMessage({ connection: this.connection });
    if (shared.connection) this.setConnection(shared.connection);
    if (shared.start) this.onStart(shared.start);
    if (shared.event) {
      // Every tab remembers it: the one that reads next resumes here.
      this.last = shared.event.sequence;
      this.onEvent(shared.event);
    }
  }

  private async lead(): Promise<void> {
    this.leads = true;
    let failures = 0;
    while (!this.stop.signal.aborted) {
      let refused = false;
      try {
        await this.read(() => {
          failures = 0;
        });
      } catch (error) {
        // The next attempt says whether the service is back.
        refused = error instanceof errors.PermissionDeniedError;
      }
      if (this.stop.signal.aborted) return;
      const isCut = failures > 0 || !navigator.onLine;
      this.share({ connection: refused ? 'refused' : isCut ? 'offline' : 'connecting' });
      await pauseAfter(failures, this.stop.signal);
      failures += 1;
    }
  }

  private async read(opened: () => void): Promise<void> {
    const stream = api.events.follow({
      after: this.last,
      signal: this.stop.signal,
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
