/**
 * Keeps a session alive while the dashboard is used. The cookie cannot be read here, so this
 * remembers only when it was renewed.
 */
import { api } from '../api/client';

const KEY = 'rota.renewed';
const DAY_MS = 86_400_000;

/** Whether somebody signed in with this browser. Without it, asking who they are is no use. */
export const wasSignedIn = (): boolean => localStorage.getItem(KEY) !== null;

export const noteRenewal = (): void => localStorage.setItem(KEY, String(Date.now()));

export const noteSignOut = (): void => localStorage.removeItem(KEY);

export async function renewSession(): Promise<void> {
  await api.auth.refresh();
  noteRenewal();
}

/** Renews the session once a day. A failure does not matter: a request will say so. */
export function renewDaily(): void {
  if (Date.now() - Number(localStorage.getItem(KEY)) > DAY_MS) {
    renewSession().catch(() => undefined);
  }
}
