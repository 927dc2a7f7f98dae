/** Lists that read their pages when they are needed. */
import type { Query } from './request.ts';

/** How the pages of a list follow one another. */
export interface Cursor<Item> {
  /** The parameters of the next page. Null after the last one. */
  query: Query | null;
  /** The items of the page that are new, and moves on. */
  take(items: Item[], total: number): Item[];
}

export interface PageReader<Item, Page> {
  read(query: Query): Promise<Page>;
  items(page: Page): Item[];
  cursor(): Cursor<Item>;
}

/** The items of a list. Use it in `for await`, as often as you like. */
export class Pages<Item, Page> implements AsyncIterable<Item> {
  readonly #reader: PageReader<Item, Page>;

  constructor(reader: PageReader<Item, Page>) {
    this.#reader = reader;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    const reader = this.#reader;
    const cursor = reader.cursor();
    while (cursor.query) {
      const page = await reader.read(cursor.query);
      const items = reader.items(page);
      yield* cursor.take(items, (page as { total?: number }).total ?? items.length);
    }
  }

  /** The response with the first page. Its `total` counts all items. */
  firstPage(): Promise<Page> {
    return this.#reader.read(this.#reader.cursor().query ?? {});
  }

  /** Every item of every page. */
  async toArray(): Promise<Item[]> {
    const found: Item[] = [];
    for await (const item of this) found.push(item);
    return found;
  }
}

/** A list that is always complete. */
export class OnePage<Item> implements Cursor<Item> {
  query: Query | null = {};

  take(items: Item[]): Item[] {
    this.query = null;
    return items;
  }
}

/**
 * Pages by `offset`. Items are found once, even if the list changes while it is read.
 *
 * Where items are added in front, the next page begins with items that were seen. Where items leave
 * the list, for example because the caller retries each failed task that it finds, the next page
 * would skip some: then the cursor steps back by as many as are missing. Only `total` tells, so items
 * are skipped if as many are added behind them as leave the list between two pages.
 */
export class Offsets<Item> implements Cursor<Item> {
  query: Query | null;
  readonly #start: number;
  readonly #key: (item: Item) => unknown;
  readonly #seen = new Set<unknown>();
  #offset: number;
  #total = 0;

  constructor(query: Query & { offset?: number | undefined }, key: (item: Item) => unknown) {
    this.query = query;
    this.#start = this.#offset = query.offset ?? 0;
    this.#key = key;
  }

  take(items: Item[], total: number): Item[] {
    const missing = Math.max(0, this.#total - total);
    this.#total = total;
    if (missing && this.#offset > this.#start) {
      this.#move(Math.max(this.#start, this.#offset - missing));
      return [];
    }
    const next = this.#offset + items.length;
    if (!items.length || next >= total) this.query = null;
    else this.#move(next);
    const fresh = items.filter((item) => !this.#seen.has(this.#key(item)));
    for (const item of fresh) this.#seen.add(this.#key(item));
    return fresh;
  }

  #move(offset: number): void {
    this.#offset = offset;
    this.query = { ...this.query, offset };
  }
}

/** Pages by their number. */
export class Numbers<Item> implements Cursor<Item> {
  query: Query | null;
  #page: number;
  #size: number | undefined;

  constructor(query: Query & { page?: number | undefined; limit?: number | undefined }) {
    this.query = query;
    this.#page = query.page ?? 1;
    this.#size = query.limit;
  }

  take(items: Item[], total: number): Item[] {
    // All pages but the last one are full.
    this.#size ??= items.length;
    const found = (this.#page - 1) * this.#size + items.length;
    this.#page += 1;
    this.query = !items.length || found >= total ? null : { ...this.query, page: this.#page };
    return items;
  }
}

/** Pages of events, after the number of the last one. */
export class Sequences<Item extends { sequence: number }> implements Cursor<Item> {
  query: Query | null;

  constructor(query: Query) {
    this.query = { ...query, after: query.after ?? 0 };
  }

  take(items: Item[], total: number): Item[] {
    // `total` counts what comes after the cursor.
    const last = items.at(-1);
    this.query = !last || items.length >= total ? null : { ...this.query, after: last.sequence };
    return items;
  }
}
