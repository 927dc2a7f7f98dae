/** What all resources have in common. */
import type { Operation } from './operation.ts';
import type { KeyedRequestOptions } from './options.ts';
import { type Cursor, Offsets, OnePage, Pages } from './pages.ts';
import { type ApiRequest, type Parts, type Query, requestOf } from './request.ts';
import type { Transport } from './transport.ts';

export class Resource {
  // A field that is really private: the transport knows the API key, and nothing may print it.
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  protected get transport(): Transport {
    return this.#transport;
  }

  protected call<R>(
    operation: Operation<R>,
    parts: Parts = {},
    options: KeyedRequestOptions = {},
  ): Promise<R> {
    const { idempotencyKey } = options;
    return this.#transport.call(operation, { ...parts, idempotencyKey }, options);
  }

  protected request(operation: Operation<unknown>, parts: Parts = {}): ApiRequest {
    return requestOf(operation, parts, this.#transport.settings.json);
  }

  protected pages<Item, Page>(
    operation: Operation<Page>,
    items: (page: Page) => Item[],
    cursor: () => Cursor<Item>,
    list: ListParts,
  ): Pages<Item, Page> {
    const { path, options } = list;
    return new Pages({
      read: (query) => this.#transport.call(operation, path ? { path, query } : { query }, options),
      items,
      cursor,
    });
  }

  /** A list with pages by `offset`. `key` tells its items apart. */
  protected offsetList<Item, Page>(
    operation: Operation<Page>,
    items: (page: Page) => Item[],
    key: (item: Item) => unknown,
    query: Query,
    list: ListParts,
  ): Pages<Item, Page> {
    return this.pages(operation, items, () => new Offsets(query, key), list);
  }

  protected wholeList<Item, Page>(
    operation: Operation<Page>,
    items: (page: Page) => Item[],
    list: ListParts,
  ): Pages<Item, Page> {
    return this.pages(operation, items, () => new OnePage(), list);
  }
}

interface ListParts {
  path?: Readonly<Record<string, string>>;
  options: KeyedRequestOptions | undefined;
}
