/** When a decision that was put off comes back. The deadline of the review does not move. */
import { strings } from './strings';

export interface SnoozeChoice {
  label: string;
  until: Date;
}

const MIN_MS = 15 * 60_000;

export function snoozeChoices(now: Date, expiresAt: string | null): SnoozeChoice[] {
  const at = (days: number, hour: number): Date => {
    const date = new Date(now);
    date.setDate(date.getDate() + days);
    date.setHours(hour, 0, 0, 0);
    return date;
  };
  // getDay: 0 is Sunday. On a Monday, the next one is a week away.
  const toMonday = (8 - now.getDay()) % 7 || 7;
  const choices: SnoozeChoice[] = [
    { label: strings.snooze.hour, until: new Date(now.getTime() + 3_600_000) },
    { label: strings.snooze.evening, until: at(0, 18) },
    { label: strings.snooze.tomorrow, until: at(1, 8) },
    { label: strings.snooze.monday, until: at(toMonday, 8) },
  ];
  const end = expiresAt ? Date.parse(expiresAt) : Number.POSITIVE_INFINITY;
  return choices.filter(({ until }, index) => {
    const time = until.getTime();
    const repeated = choices.slice(0, index).some((each) => each.until.getTime() === time);
    return time - now.getTime() >= MIN_MS && time < end && !repeated;
  });
}
