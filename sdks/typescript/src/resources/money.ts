/** Credits, usage, subscriptions and the connect pass. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import type { Filters } from '../request.ts';
import { Resource } from '../resource.ts';

export class Credits extends Resource {
  balance(options?: RequestOptions): Promise<types.BalanceResponse> {
    return this.call(operations.getBalance, {}, options);
  }

  /** How long the money lasts at the pace of the last days. */
  async forecast(options?: RequestOptions): Promise<types.Forecast> {
    return (await this.call(operations.getForecast, {}, options)).forecast;
  }

  async settings(options?: RequestOptions): Promise<types.CreditSettings> {
    return (await this.call(operations.getCreditSettings, {}, options)).settings;
  }

  async updateSettings(
    changes: types.PatchCreditSettings,
    options?: RequestOptions,
  ): Promise<types.CreditSettings> {
    const parts = { body: changes };
    return (await this.call(operations.patchCreditSettings, parts, options)).settings;
  }

  /** A checkout to pay at. The balance changes when the payment has arrived. */
  topUp(body: types.TopUp, options?: KeyedRequestOptions): Promise<types.TopUpResponse> {
    return this.call(operations.topUp, { body }, options);
  }

  /** Every movement of money, newest first. */
  transactions(
    query: Filters<types.ListTransactionsData> = {},
    options?: RequestOptions,
  ): Pages<types.Transaction, types.TransactionsResponse> {
    return this.offsetList(
      operations.listTransactions,
      (page) => page.transactions,
      (transaction) => transaction.id,
      query,
      { options },
    );
  }

  /** The money that is set aside for tasks. */
  holds(
    query: Filters<types.ListHoldsData> = {},
    options?: RequestOptions,
  ): Pages<types.Hold, types.HoldsResponse> {
    return this.offsetList(
      operations.listHolds,
      (page) => page.holds,
      (hold) => hold.taskId,
      query,
      { options },
    );
  }

  /** What model calls cost, by day, agent or model. */
  usage(
    query: Filters<types.GetUsageData> = {},
    options?: RequestOptions,
  ): Promise<types.UsageResponse> {
    return this.call(operations.getUsage, { query }, options);
  }
}

/** Changes need a deployment of Variant A. On others they throw NotFoundError. */
export class Subscriptions extends Resource {
  get(options?: RequestOptions): Promise<types.SubscriptionsResponse> {
    return this.call(operations.getSubscription, {}, options);
  }

  /** What each tier costs and gives. */
  plans(options?: RequestOptions): Promise<types.PlansResponse> {
    return this.call(operations.listPlans, {}, options);
  }

  /** A checkout page, or the subscription if a lower plan starts next period. */
  subscribe(
    body: types.Subscribe,
    options?: KeyedRequestOptions,
  ): Promise<types.CheckoutResponse | types.LowerPlanResponse> {
    return this.call(operations.subscribe, { body }, options);
  }

  /** Ends the subscription with its period. */
  async cancel(options?: KeyedRequestOptions): Promise<types.Subscription> {
    return (await this.call(operations.cancelSubscription, {}, options)).subscription;
  }

  /** Keeps a subscription that was cancelled and has not ended. */
  async resume(options?: KeyedRequestOptions): Promise<types.Subscription> {
    return (await this.call(operations.resumeSubscription, {}, options)).subscription;
  }
}

/** The connect pass of Variant B. On other deployments, every method throws NotFoundError. */
export class ConnectPass extends Resource {
  billing(options?: RequestOptions): Promise<types.PassBillingResponse> {
    return this.call(operations.connectPassBilling, {}, options);
  }

  /** The URL of a checkout to pay at. */
  async checkout(options?: KeyedRequestOptions): Promise<string> {
    return (await this.call(operations.checkoutConnectPass, {}, options)).checkoutUrl;
  }

  async cancel(options?: KeyedRequestOptions): Promise<types.PassBilling> {
    return (await this.call(operations.cancelConnectPass, {}, options)).billing;
  }

  async resume(options?: KeyedRequestOptions): Promise<types.PassBilling> {
    return (await this.call(operations.resumeConnectPass, {}, options)).billing;
  }
}
