/** Days and times of the ledger. Days of usage are in UTC. */
const longDayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'long' });
const longDayYearFormat = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
});
const utcLongFormat = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  day: 'numeric',
  month: 'long',
  timeZone: 'UTC',
});
const utcShortFormat = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  timeZone: 'UTC',
});
const secondsFormat = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const minutesFormat = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});
const weekdayFormat = new Intl.DateTimeFormat(undefined, { weekday: 'short' });
const dayFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const dayYearFormat = new Intl.DateTimeFormat(undefined, {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
});

/** "16 November", with the year if it is another one. */
export function longDay(iso: string, now = new Date()): string {
  const date = new Date(iso);
  const format = date.getFullYear() === now.getFullYear() ? longDayFormat : longDayYearFormat;
  return format.format(date);
}

/** "Thu, 12 November" of a day in UTC such as "2026-11-12". */
export const utcDay = (day: string): string => utcLongFormat.format(new Date(day));

/** "12 Nov" of a day in UTC. */
export const utcShortDay = (day: string): string => utcShortFormat.format(new Date(day));

/** The time of a transaction: to the second today, with the weekday this week, then with the day. */
export function ledgerTime(iso: string, now = new Date()): string {
  const date = new Date(iso);
  if (date.toDateString() === now.toDateString()) return secondsFormat.format(date);
  const days = (now.getTime() - date.getTime()) / 86_400_000;
  if (days < 6) return `${weekdayFormat.format(date)} ${minutesFormat.format(date)}`;
  if (date.getFullYear() !== now.getFullYear()) return dayYearFormat.format(date);
  return `${dayFormat.format(date)} ${minutesFormat.format(date)}`;
}
