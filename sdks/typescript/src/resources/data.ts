/** All data of the account: its export and its erasure. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { RequestOptions } from '../options.ts';
import { Resource } from '../resource.ts';

/** Export and erasure. They need the session of an owner: pass its token as `apiKey`. */
export class Data extends Resource {
  /**
   * Everything that the account owns, as lines of JSON, in pieces as they arrive. The last line has
   * `end`. Without it, the export is not complete. It is not repeated if the connection breaks.
   */
  async *export(
    options: Pick<RequestOptions, 'signal'> = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const request = this.request(operations.exportAccount);
    const { signal } = options;
    for await (const piece of this.transport.stream(request, 'application/x-ndjson', {}, signal)) {
      if (piece.length) yield piece;
    }
  }

  /**
   * Erases the account for good. `name` is its name, to confirm that it is the right one. The
   * session must be younger than 10 minutes.
   */
  async erase(body: types.EraseAccount, options?: RequestOptions): Promise<types.Erasure> {
    return (await this.call(operations.eraseAccount, { body }, options)).erasure;
  }
}
