/**
 * The token of an invitation. The link has it after #, which browsers do not send. It stays in this
 * tab until it is used, also while a person signs in, and never becomes part of another address.
 */
const KEY = 'rota.invitation';
// A deployment of several cells: the company is in the cell that the token names.
const CELL = /^invite_([a-z][a-z0-9]{0,15})_[0-9a-f]{32}_/;
// A sign-in with this cookie is a sign-in to that cell.
const CHOICE = location.protocol === 'https:' ? '__Host-rota-cell' : 'rota-cell';

function chooseCell(name: string, maxAgeS: number): void {
  const secure = location.protocol === 'https:' ? '; Secure' : '';
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is asynchronous, and missing on plain HTTP
  document.cookie = `${CHOICE}=${name}; Path=/; SameSite=Strict; Max-Age=${maxAgeS}${secure}`;
}

/** Keeps the token of the link that was opened. Returns whether there was one. */
export function keepToken(hash: string): boolean {
  const token = hash.replace(/^#/, '');
  if (!token) return false;
  sessionStorage.setItem(KEY, token);
  const cell = CELL.exec(token)?.[1];
  if (cell) chooseCell(cell, 600);
  return true;
}

export const keptToken = (): string | null => sessionStorage.getItem(KEY);

export function forgetToken(): void {
  if (CELL.test(keptToken() ?? '')) chooseCell('', 0);
  sessionStorage.removeItem(KEY);
}
