/**
 * Numbers, money and time as people read them. Balances, holds, budgets and prices have two decimals.
 * What steps and tasks cost has four, since a step often costs less than a cent.
 */
/** "1234.50" as "1,234.50". */
const grouped = (text: string): string => text.replace(/\d(?=(\d{3})+\.)/g, '$&,');

export function usd(amount: string | number, decimals: 2 | 4 = 2): string {
  const value = typeof amount === 'string' ? Number(amount) : amount;
  if (!Number.isFinite(value)) return String(amount);
  if (decimals === 4 && value === 0) return '$0';
  // A cost below a cent is not free.
  if (decimals === 2 && value > 0 && value < 0.005) return '<$0.01';
  // As in en-US. The format of Intl takes long to make on a phone, and money is on every screen.
  const text = Math.abs(value).toFixed(decimals);
  return `${value < 0 ? '−' : ''}$${grouped(text)}`;
}

export const cents = (value: number): string => usd(value / 100);

/** What is available, in whole cents. Rounded down, as in the balance: it is never more than that. */
export const roundedDown = (amount: string): string =>
  cents(Math.floor(Math.round(Number(amount) * 1e6) / 1e4));

export const count = (value: number): string => value.toLocaleString('en-US');

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

const UNITS: [number, string][] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** A length of time in at most two units: "2 h 14 min", "6.2 s". */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')} s`;
  let seconds = Math.round(ms / 1_000);
  const parts: string[] = [];
  for (const [size, name] of UNITS) {
    const whole = Math.floor(seconds / size);
    if (whole > 0) parts.push(`${whole} ${name}`);
    seconds -= whole * size;
    if (parts.length === 2) break;
    if (parts.length === 1 && whole === 0) break;
  }
  return parts.join(' ');
}

export function relative(iso: string, now: number): string {
  const past = now - Date.parse(iso);
  if (Math.abs(past) < 60_000) return past >= 0 ? 'just now' : 'in a moment';
  // After a week, the day says more than a number of days.
  if (past >= 7 * 86_400_000) return day(iso);
  const text = coarse(Math.abs(past));
  return past > 0 ? `${text} ago` : `in ${text}`;
}

/** A length of time in one unit, or two where the second matters: "12 min", "6 d 21 h". */
export function coarse(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return 'less than 1 min';
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24)
    return minutes % 60 && hours < 6 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 && days < 14 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** Making a format takes long on a phone, so each one is made when it is first used. */
function lazily(options: Intl.DateTimeFormatOptions): (date: Date) => string {
  let format: Intl.DateTimeFormat | undefined;
  return (date) => {
    format ??= new Intl.DateTimeFormat(undefined, options);
    return format.format(date);
  };
}

const exactly = lazily({ dateStyle: 'full', timeStyle: 'medium' });
const dayOfYear = lazily({ day: 'numeric', month: 'short' });
const dayAndYear = lazily({ day: 'numeric', month: 'short', year: 'numeric' });

export const exact = (iso: string): string => exactly(new Date(iso));

export function day(iso: string): string {
  const date = new Date(iso);
  return (date.getFullYear() === new Date().getFullYear() ? dayOfYear : dayAndYear)(date);
}
