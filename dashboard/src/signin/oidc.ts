/**
 * OpenID Connect in the browser: authorization code with PKCE. The service exchanges the code and
 * sets a cookie that scripts cannot read, so this page never sees a token.
 */
import type { Issuer } from '@rota/sdk';
import { api } from '../api/client';

const STORED = 'rota.signin';

interface Attempt {
  issuer: string;
  state: string;
  nonce: string;
  verifier: string;
  next: string;
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)));

async function challengeOf(verifier: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  return base64url(new Uint8Array(digest));
}

/** Only a path of our own: a link must not send a person who signed in elsewhere. */
export function ownPath(next: string | null | undefined): string {
  if (!next?.startsWith('/') || !URL.canParse(next, location.origin)) return '/';
  const url = new URL(next, location.origin);
  if (url.origin !== location.origin || url.pathname.startsWith('/signin')) return '/';
  // The path of "/.//evil.example" is "//evil.example", which as a link is another server.
  if (url.pathname.startsWith('//')) return '/';
  return url.pathname + url.search + url.hash;
}

const callback = (): string => `${location.origin}/signin/callback`;

/** Leaves for the identity provider. */
export async function leave(issuer: Issuer, next: string): Promise<void> {
  if (!issuer.authorizationEndpoint) {
    throw new Error(`${issuer.name} cannot be reached at the moment. Try again in a minute.`);
  }
  const attempt: Attempt = {
    issuer: issuer.issuer,
    state: random(),
    nonce: random(),
    verifier: random(),
    next: ownPath(next),
  };
  sessionStorage.setItem(STORED, JSON.stringify(attempt));
  const url = new URL(issuer.authorizationEndpoint);
  const parameters = {
    response_type: 'code',
    client_id: issuer.clientId,
    redirect_uri: callback(),
    scope: 'openid email profile',
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: await challengeOf(attempt.verifier),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

/** Comes back from the identity provider. Returns the path to go on to. */
export async function comeBack(search: URLSearchParams): Promise<string> {
  const stored = sessionStorage.getItem(STORED);
  sessionStorage.removeItem(STORED);
  const attempt = stored ? (JSON.parse(stored) as Attempt) : null;
  if (!attempt || search.get('state') !== attempt.state) {
    throw new Error('This sign-in was not started in this tab. Start again.');
  }
  const issuer = search.get('iss');
  if (issuer !== null && issuer !== attempt.issuer) {
    throw new Error('The response came from a different identity provider. Sign in again.');
  }
  const code = search.get('code');
  if (!code) {
    throw new Error(
      search.get('error') === 'access_denied'
        ? 'The identity provider did not sign you in.'
        : (search.get('error_description') ?? 'The identity provider sent no code. Start again.'),
    );
  }
  await api.auth.startSessionByCode({
    code,
    codeVerifier: attempt.verifier,
    redirectUri: callback(),
    issuer: attempt.issuer,
    nonce: attempt.nonce,
    cookie: true,
  });
  return attempt.next;
}
