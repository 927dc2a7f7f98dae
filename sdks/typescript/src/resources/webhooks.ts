/** Webhooks: the events of the account, sent to an endpoint of yours. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { type Filters, idOf } from '../request.ts';
import { Resource } from '../resource.ts';

/** A webhook, or its ID. */
export type WebhookRef = string | { id: string };

/** Endpoints that receive events. `webhooks.verify` checks what they receive. */
export class Webhooks extends Resource {
  /** The webhooks, newest first. */
  list(options?: RequestOptions): Pages<types.Webhook, types.WebhooksResponse> {
    return this.wholeList(operations.listWebhooks, (page) => page.webhooks, { options });
  }

  /**
   * Creates a webhook for events of some types, or for all. `secret` is shown only here.
   *
   * If the connection breaks before the response arrives, `secret` is null: replace it with
   * `rotateSecret`.
   */
  create(
    body: types.CreateWebhook,
    options?: KeyedRequestOptions,
  ): Promise<types.WebhookSecretResponse> {
    return this.call(operations.createWebhook, { body }, options);
  }

  /** The webhook. `confirmedSequence` shows how far deliveries have progressed. */
  async get(webhook: WebhookRef, options?: RequestOptions): Promise<types.Webhook> {
    const parts = { path: { id: idOf(webhook) } };
    return (await this.call(operations.getWebhook, parts, options)).webhook;
  }

  /** Changes the fields that are given. A webhook that is enabled again catches up. */
  async update(
    webhook: WebhookRef,
    changes: types.PatchWebhook,
    options?: RequestOptions,
  ): Promise<types.Webhook> {
    const parts = { path: { id: idOf(webhook) }, body: changes };
    return (await this.call(operations.patchWebhook, parts, options)).webhook;
  }

  /** Deletes the webhook and the history of its deliveries. */
  async delete(webhook: WebhookRef, options?: RequestOptions): Promise<void> {
    await this.call(operations.deleteWebhook, { path: { id: idOf(webhook) } }, options);
  }

  /**
   * Replaces the secret. For `overlapHours` (default: 24), both of them sign. Secrets of earlier
   * rotations sign until their own overlap ends. With 0, only the new one signs.
   *
   * If the connection breaks before the response arrives, `secret` is null: call it again.
   */
  rotateSecret(
    webhook: WebhookRef,
    body: types.RotateSecret = {},
    options?: KeyedRequestOptions,
  ): Promise<types.WebhookSecretResponse> {
    const parts = { path: { id: idOf(webhook) }, body };
    return this.call(operations.rotateWebhookSecret, parts, options);
  }

  /** Sends an event of the type `webhook.test` now. `delivered` says whether it arrived. */
  async test(webhook: WebhookRef, options?: RequestOptions): Promise<types.Delivery> {
    const parts = { path: { id: idOf(webhook) } };
    return (await this.call(operations.testWebhook, parts, options)).delivery;
  }

  /** Sends this event and all later ones again, in order. */
  async replay(
    webhook: WebhookRef,
    body: types.ReplayWebhook,
    options?: RequestOptions,
  ): Promise<types.Webhook> {
    const parts = { path: { id: idOf(webhook) }, body };
    return (await this.call(operations.replayWebhook, parts, options)).webhook;
  }

  /** The attempts of the last seven days, newest first. */
  deliveries(
    webhook: WebhookRef,
    query: Filters<types.ListDeliveriesData> = {},
    options?: RequestOptions,
  ): Pages<types.Delivery, types.DeliveriesResponse> {
    return this.offsetList(
      operations.listDeliveries,
      (page) => page.deliveries,
      (delivery) => delivery.id,
      query,
      { path: { id: idOf(webhook) }, options },
    );
  }

  /** The keys that verify the signature `v1a`. Needs no credentials. */
  publicKeys(options?: RequestOptions): Promise<types.WebhookKeysResponse> {
    return this.call(operations.webhookKeys, {}, options);
  }
}
