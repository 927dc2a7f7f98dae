/** The events of the account, and the state of the service. */
import { decodedEvent } from '../events.ts';
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { RequestOptions } from '../options.ts';
import { type Pages, Sequences } from '../pages.ts';
import type { Filters } from '../request.ts';
import { Resource } from '../resource.ts';
import { EventStream, type FollowOptions } from '../streams.ts';

export interface FollowEventsOptions extends FollowOptions {
  /** Only events of this type, or of one of several types. */
  type?: string | readonly string[] | undefined;
}

export class Events extends Resource {
  /** The stored events, oldest first, after a sequence number. */
  list(
    query: Filters<types.AccountEventsData> = {},
    options?: RequestOptions,
  ): Pages<types.Event, types.EventsResponse> {
    return this.pages(
      operations.accountEvents,
      (page) => page.events,
      () => new Sequences(query),
      { options },
    );
  }

  /**
   * The events of the account as they happen, from now on or after a sequence number.
   *
   * It begins when the first event is asked for, or with `ready()`, and has no end. To follow many
   * tasks, use this instead of one stream for each.
   */
  follow({ type, ...options }: FollowEventsOptions = {}): EventStream<types.Event> {
    const request = this.request(operations.accountEvents, { query: { type } });
    return new EventStream(this.transport, request, decodedEvent, options);
  }
}

/** The state of the service. Needs no credentials. */
export class Health extends Resource {
  live(options?: RequestOptions): Promise<types.LiveResponse> {
    return this.call(operations.live, {}, options);
  }

  /** Throws ServiceUnavailableError if the service cannot handle requests. */
  ready(options?: RequestOptions): Promise<types.ReadyResponse> {
    return this.call(operations.ready, {}, options);
  }

  /** The metrics of this process in the text format of Prometheus. */
  metrics(options?: RequestOptions): Promise<string> {
    return this.transport.send(this.request(operations.metrics), (text) => text, options);
  }
}
