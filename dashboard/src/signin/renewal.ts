/**
 * When the session was renewed. The cookie cannot be read here, so this remembers it for all tabs.
 */
const KEY = 'rota.renewed';
const DAY_MS = 86_400_000;

/** Whether somebody signed in with this browser. Without it, asking who they are is no use. */
export const wasSignedIn = (): boolean => localStorage.getItem(KEY) !== null;

export const noteRenewal = (): void => localStorage.setItem(KEY, String(Date.now()));

export const noteSignOut = (): void => localStorage.removeItem(KEY);

/** Once a day, so that the session of a page in use never ends by itself. */
export const isRenewalDue = (): boolean => Date.now() - Number(localStorage.getItem(KEY)) > DAY_MS;
