/** What you are notified about in an account, by email and in a chat. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { RequestOptions } from '../options.ts';
import { Resource } from '../resource.ts';

/** Your notifications. They need a session: pass its token as `apiKey`. */
export class Notifications extends Resource {
  /** What you are notified about, how, and the state of your messages. */
  get(options?: RequestOptions): Promise<types.NotificationsResponse> {
    return this.call(operations.getNotifications, {}, options);
  }

  /** Replaces what you are notified about. Without `url`, the webhook of the chat stays as it is. */
  replace(
    body: types.PutNotifications,
    options?: RequestOptions,
  ): Promise<types.NotificationsResponse> {
    return this.call(operations.putNotifications, { body }, options);
  }

  /** Sends a test message to you. The response says whether it was delivered. */
  test(
    channel: types.NotificationChannel,
    options?: RequestOptions,
  ): Promise<types.TestNotificationResponse> {
    return this.call(operations.testNotifications, { body: { channel } }, options);
  }

  /** Which emails the link in an email turns off. It changes nothing. */
  getUnsubscribe(token: string, options?: RequestOptions): Promise<types.UnsubscribeResponse> {
    return this.call(operations.getUnsubscribe, { path: { token } }, options);
  }

  /** Turns off the emails that the link in an email is about. */
  unsubscribe(token: string, options?: RequestOptions): Promise<types.UnsubscribeResponse> {
    return this.call(operations.unsubscribe, { path: { token } }, options);
  }
}
