import type { PastCheck, ServerStatus } from '@rota/sdk';
import { statusWords, strings } from './strings';

/** How many checks ended how, in words: for people who do not see the strip. */
export function summary(checks: PastCheck[]): string {
  const counts = new Map<ServerStatus, number>();
  for (const check of checks) counts.set(check.status, (counts.get(check.status) ?? 0) + 1);
  const { health } = strings;
  if (counts.size === 1 && counts.has('CONNECTED')) {
    return `${health.last(checks.length)}: ${health.fine}`;
  }
  const parts = [...counts].map(
    ([status, count]) => `${count} ${statusWords[status].toLowerCase()}`,
  );
  return `${health.last(checks.length)}: ${parts.join(', ')}`;
}
