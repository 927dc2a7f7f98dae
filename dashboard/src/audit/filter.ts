/** The filters of the trail, as the URL has them. Days are days of the person who looks. */
import type { AuditActor } from '@rota/sdk';
import { strings } from './strings';

export interface AuditFilter {
  action?: string;
  actor?: string;
  user?: string;
  resource?: string;
  from?: string;
  to?: string;
}

const isActor = (name: string): name is AuditActor => Object.hasOwn(strings.actors, name);

/** The moment when a day such as "2026-11-16" begins, or the day that many days later. */
function startOf(day: string | undefined, daysLater = 0): string | undefined {
  const [, year, month, date] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(day ?? '') ?? [];
  if (!year) return undefined;
  const start = new Date(0);
  start.setFullYear(Number(year), Number(month) - 1, Number(date) + daysLater);
  start.setHours(0, 0, 0, 0);
  return start.toISOString();
}

/** What the API is asked for. What a URL has in vain is left out. */
export function toQuery({ action, actor, user, resource, from, to }: AuditFilter) {
  return {
    action: action?.split(','),
    actor: actor && isActor(actor) ? actor : undefined,
    userId: user,
    resource,
    from: startOf(from),
    // The last day is shown, too.
    to: startOf(to, 1),
  };
}
