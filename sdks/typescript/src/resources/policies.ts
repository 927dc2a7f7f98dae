/** Who can approve: the policies of an account, and standing rules. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { type Filters, idOf } from '../request.ts';
import { Resource } from '../resource.ts';

/** A rule, or its ID. */
export type RuleRef = string | { id: string };

/** The policies of the account. They need a session: pass its token as `apiKey`. */
export class Policies extends Resource {
  /** Who can approve, and what waits for approval. */
  get(options?: RequestOptions): Promise<types.PoliciesResponse> {
    return this.call(operations.getPolicies, {}, options);
  }

  /** Replaces the policies. They apply to every decision from then on. */
  replace(body: types.PutPolicies, options?: RequestOptions): Promise<types.PoliciesResponse> {
    return this.call(operations.putPolicies, { body }, options);
  }
}

/** Standing rules. They need a session: pass its token as `apiKey`. */
export class Rules extends Resource {
  /**
   * Lets an agent call a tool without a review, if the arguments match the conditions. `fromReview`
   * takes the server, the tool and the agent from a call in a review. Without `arguments`, the rule
   * then covers calls with exactly the arguments of that one.
   */
  async create(body: types.CreateRule, options?: KeyedRequestOptions): Promise<types.Rule> {
    return (await this.call(operations.createRule, { body }, options)).rule;
  }

  /** The rules, newest first, including those that no longer work. */
  list(
    query: Filters<types.ListRulesData> = {},
    options?: RequestOptions,
  ): Pages<types.Rule, types.RulesResponse> {
    return this.offsetList(
      operations.listRules,
      (page) => page.rules,
      (rule) => rule.id,
      query,
      { options },
    );
  }

  /** The rule, with how often it was used and whether it still works. */
  async get(rule: RuleRef, options?: RequestOptions): Promise<types.Rule> {
    return (await this.call(operations.getRule, { path: { id: idOf(rule) } }, options)).rule;
  }

  /** Revokes the rule: no call starts under it any more. It stays in the list. */
  async delete(rule: RuleRef, options?: RequestOptions): Promise<void> {
    await this.call(operations.deleteRule, { path: { id: idOf(rule) } }, options);
  }
}
