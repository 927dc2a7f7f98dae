/** The audit trail: who did what to which resource. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import type { Filters } from '../request.ts';
import { Resource } from '../resource.ts';

/** The audit trail. A key needs the scope `audit:read`. */
export class Audit extends Resource {
  /**
   * The entries that match every filter, newest first.
   *
   * The part of an action before its dot stands for all actions of a family.
   */
  list(
    query: Filters<types.ListAuditData> = {},
    options?: RequestOptions,
  ): Pages<types.AuditEntry, types.AuditResponse> {
    return this.offsetList(
      operations.listAudit,
      (page) => page.entries,
      (entry) => entry.sequence,
      query,
      { options },
    );
  }

  /** The newest entry, signed. Keep `jws`: it shows later whether the trail was changed. */
  async head(options?: RequestOptions): Promise<types.AuditHead> {
    return (await this.call(operations.listAudit, { query: { limit: 1 } }, options)).head;
  }

  /**
   * The whole trail as lines of JSON, oldest first, with its signed head at the end.
   *
   * `rota admin audit verify --file` checks it.
   */
  export(options?: RequestOptions): Promise<string> {
    const request = this.request(operations.listAudit);
    const headers = { ...request.headers, Accept: 'application/x-ndjson' };
    return this.transport.send({ ...request, headers }, (text) => text, options);
  }

  /** The keys that sign heads and receipts. Needs no credentials. */
  publicKeys(options?: RequestOptions): Promise<types.AuditKeysResponse> {
    return this.call(operations.auditKeys, {}, options);
  }
}
