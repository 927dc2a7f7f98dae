/**
 * What a person has typed and not sent yet. It outlives its screen, a reload, and the pages where
 * they pay or sign in. Only this tab has it. It is removed when the person signs out, or when
 * another one signs in.
 */
const PREFIX = 'rota.kept.';
/** Who typed it. */
const USER = 'rota.user';

/** What the storage of the tab has no room for. The browser asks before it drops it. */
const large = new Map<string, unknown>();
const warn = (event: BeforeUnloadEvent) => event.preventDefault();

export function kept<T>(name: string): T | null {
  if (large.has(name)) return large.get(name) as T;
  return JSON.parse(sessionStorage.getItem(PREFIX + name) ?? 'null') as T | null;
}

/** Null: there is nothing to keep any more. */
export function keep(name: string, value: unknown): void {
  large.delete(name);
  sessionStorage.removeItem(PREFIX + name);
  if (value !== null) {
    try {
      sessionStorage.setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      large.set(name, value);
    }
  }
  if (large.size) addEventListener('beforeunload', warn);
  else removeEventListener('beforeunload', warn);
}

/** A session can end without signing out, and another person can sign in next. */
export function keepOnlyFor(user: string): void {
  if (sessionStorage.getItem(USER) === user) return;
  forgetKept();
  sessionStorage.setItem(USER, user);
}

/** After signing out, the next person must not find it. */
export function forgetKept(): void {
  const names = Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));
  for (const key of [USER, ...names]) sessionStorage.removeItem(key);
  large.clear();
  removeEventListener('beforeunload', warn);
}
