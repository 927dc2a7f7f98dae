/**
 * The token of an invitation. The link has it after #, which browsers do not send. It stays in this
 * tab until it is used, also while a person signs in, and never becomes part of another address.
 */
const KEY = 'rota.invitation';

/** Keeps the token of the link that was opened. Returns whether there was one. */
export function keepToken(hash: string): boolean {
  const token = hash.replace(/^#/, '');
  if (!token) return false;
  sessionStorage.setItem(KEY, token);
  return true;
}

export const keptToken = (): string | null => sessionStorage.getItem(KEY);
export const forgetToken = (): void => sessionStorage.removeItem(KEY);
