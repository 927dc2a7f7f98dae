/**
 * The account's event stream. Browsers open only six HTTP/1.1 connections, so the tabs of a
 * browser share one stream: the tab that holds the lock reads it and passes events on.
 */
import type { Event } from '@rota/sdk';
import { accountHeaders } from '../api/client';
import { messages } from './sse';

export type Connection = 'connecting' | 'live' | 'offline';

interface Shared {
  event?: Event;
  connection?: Connection;
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
  private lastId: string | null = null;

  constructor(
    account: string,
    private onEvent: (event: Event) => void,
    private onStart: () => void,
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
    if (shared.event) {
      // Every tab remembers it: the one that reads next resumes here.
      this.lastId = String(shared.event.sequence);
      this.onEvent(shared.event);
    }
  }

  private async lead(): Promise<void> {
    this.leads = true;
    let failures = 0;
    while (!this.stop.signal.aborted) {
      try {
        await this.read(() => {
          failures = 0;
        });
      } catch {
        // The next attempt says whether the service is back.
      }
      if (this.stop.signal.aborted) return;
      this.share({ connection: failures > 0 ? 'offline' : 'connecting' });
      await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 10_000, this.stop.signal);
      failures += 1;
    }
  }

  private async read(opened: () => void): Promise<void> {
    const response = await fetch('/api/events', {
      headers: {
        ...accountHeaders(),
        Accept: 'text/event-stream',
        ...(this.lastId ? { 'Last-Event-ID': this.lastId } : {}),
      },
      signal: this.stop.signal,
    });
    if (!response.ok || !response.body) throw new Error(`stream: ${response.status}`);
    opened();
    this.share({ connection: 'live' });
    // With an event to resume from, the stream sends what was missed. Without one, it starts with
    // the next event.
    if (this.lastId === null) this.onStart();
    for await (const message of messages(response.body)) {
      this.share({ event: JSON.parse(message.data) as Event });
    }
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
