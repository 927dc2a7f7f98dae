/** Entries in words. */
import type { AuditEntry } from '@rota/sdk';
import { families, strings } from './strings';

const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** To the second, whatever day it was. */
export const timeWords = (at: string): string => timeFormat.format(new Date(at));

/** "Task: created" of `task.created`. */
export function actionWords(action: string): string {
  const [family = '', rest = ''] = action.split('.');
  return `${families[family] ?? family}: ${rest.replaceAll('_', ' ')}`;
}

/** Who acted, and a second line about it. */
export function actorWords(
  { actor, userId, actorName }: AuditEntry,
  nameOf: (userId: string) => string,
): [string, string | null] {
  const person = userId ? nameOf(userId) : strings.unknownPerson;
  if (actor === 'user') return [person, null];
  if (actor === 'key') return [person, strings.withKey];
  if (actor === 'operator') return [strings.operator, actorName];
  return [actor === 'agent' ? strings.agent : strings.service, null];
}

/** Entries of several pages once each: while pages are read, new entries move older ones on. */
export function once(entries: AuditEntry[]): AuditEntry[] {
  const seen = new Set<number>();
  return entries.filter(({ sequence }) => !seen.has(sequence) && seen.add(sequence));
}
