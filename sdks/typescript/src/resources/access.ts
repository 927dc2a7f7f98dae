/** Who may use the service: API keys, sessions and signing in. */
import * as operations from '../generated/operations.gen.ts';
import type * as types from '../generated/types.gen.ts';
import type { KeyedRequestOptions, RequestOptions } from '../options.ts';
import type { Pages } from '../pages.ts';
import { idOf } from '../request.ts';
import { Resource } from '../resource.ts';

/** API keys. Only a session can manage them: pass its token as `apiKey`. */
export class Keys extends Resource {
  list(options?: RequestOptions): Pages<types.ApiKey, types.KeysResponse> {
    return this.wholeList(operations.listKeys, (page) => page.keys, { options });
  }

  /**
   * Creates a key. `secret` is shown only here.
   *
   * If the connection breaks before the response arrives, `secret` is null: delete the key and create
   * another.
   */
  create(body: types.CreateKey, options?: KeyedRequestOptions): Promise<types.KeyCreatedResponse> {
    return this.call(operations.createKey, { body }, options);
  }

  /** Revokes the key. It stops working within a second. */
  async delete(key: string | { id: string }, options?: RequestOptions): Promise<void> {
    await this.call(operations.deleteKey, { path: { id: idOf(key) } }, options);
  }
}

export class Sessions extends Resource {
  /** The sessions of the user that have not ended. */
  list(options?: RequestOptions): Pages<types.Session, types.SessionsResponse> {
    return this.wholeList(operations.listSessions, (page) => page.sessions, { options });
  }

  /** Ends the session and its tokens. */
  async delete(session: string | { id: string }, options?: RequestOptions): Promise<void> {
    await this.call(operations.deleteSession, { path: { id: idOf(session) } }, options);
  }
}

/**
 * Signing in. A session token is used like an API key. With `cookie`, the browser keeps it where
 * scripts cannot read it, and the token here is null.
 */
export class Auth extends Resource {
  /** The identity providers of the deployment. Needs no credentials. */
  config(options?: RequestOptions): Promise<types.AuthConfigResponse> {
    return this.call(operations.authConfig, {}, options);
  }

  /** A session token for an ID token of an identity provider. Each ID token works once. */
  async startSession(body: types.StartSession, options?: RequestOptions): Promise<string | null> {
    const parts = { body, repeatable: false };
    return (await this.call(operations.startSession, parts, options)).token;
  }

  /** A session token for an authorization code. Each code works once. */
  async startSessionByCode(
    body: types.StartSessionByCode,
    options?: RequestOptions,
  ): Promise<string | null> {
    const parts = { body, repeatable: false };
    return (await this.call(operations.startSessionByCode, parts, options)).token;
  }

  /** A new token of the same session. The old one stays valid until it expires. */
  async refresh(options?: RequestOptions): Promise<string | null> {
    return (await this.call(operations.refreshSession, {}, options)).token;
  }

  /** Ends the session and all of its tokens. */
  async logout(options?: RequestOptions): Promise<void> {
    // The token ends with the session.
    await this.call(operations.logout, { doneStatus: 401 }, options);
  }

  /** The keys that sign session tokens. Needs no credentials. */
  publicKeys(options?: RequestOptions): Promise<types.JsonWebKeySet> {
    return this.call(operations.jwks, {}, options);
  }
}
