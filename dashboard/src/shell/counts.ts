import type { Approval } from '@rota/sdk';

/** Whether it waits for a decision now, and was not put off until later. */
export const isWaitingNow = ({ snoozedUntil }: Approval): boolean =>
  !snoozedUntil || Date.parse(snoozedUntil) <= Date.now();
