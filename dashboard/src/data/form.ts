/** The form of the retention: what people type, and what is sent. */
import type { AccountRetention, PutRetention } from '@rota/sdk';

export const kinds = ['tasks', 'steps', 'events', 'audit'] as const;

/** Days as they are typed. Empty: the default of the service. */
export type Form = Record<(typeof kinds)[number], string>;

const MOST_DAYS = 36_500;

export const formOf = (retention: AccountRetention): Form => ({
  tasks: String(retention.tasks ?? ''),
  steps: String(retention.steps ?? ''),
  events: String(retention.events ?? ''),
  audit: String(retention.audit ?? ''),
});

/** What the form sends. Null if a number of days is not valid. */
export function retentionOf(form: Form): PutRetention | null {
  const retention: PutRetention = {};
  for (const kind of kinds) {
    const text = form[kind].trim();
    const days = Number(text);
    if (text !== '' && !(/^\d+$/.test(text) && days >= 1 && days <= MOST_DAYS)) return null;
    retention[kind] = text === '' ? null : days;
  }
  return retention;
}

/** Whether an export has its last line. */
export const isComplete = (lines: string): boolean =>
  lines.endsWith('\n') &&
  lines.slice(lines.lastIndexOf('\n', lines.length - 2) + 1).startsWith('{"end":');
