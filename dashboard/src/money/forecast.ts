/** What happens to the money if spending goes on as in the last days. */
import type { BalanceResponse, Forecast } from '@rota/sdk';

/** Each case is one sentence. `until` is when the money of that sentence ends. */
export type Outlook =
  | { kind: 'quiet'; days: number }
  | { kind: 'allowance-lasts' }
  | { kind: 'allowance-ends'; until: string; next: 'top-up' | 'refused' | 'needs-top-up' }
  | { kind: 'allowance-ended'; next: 'top-up' | 'refused' | 'needs-top-up'; until: string | null }
  | { kind: 'balance-ends'; until: string }
  | { kind: 'balance-lasts' };

export function outlook(
  balance: BalanceResponse,
  forecast: Forecast,
  takesPayments: boolean,
): Outlook {
  const { hasAllowance, allowOverflow, topUpCents, usageBar } = balance;
  const without = takesPayments ? 'needs-top-up' : 'refused';
  const next = !allowOverflow ? 'refused' : topUpCents > 0 ? 'top-up' : without;
  if (hasAllowance && usageBar.status === 'depleted') {
    return { kind: 'allowance-ended', next, until: forecast.balanceLastsUntil };
  }
  if (Number(forecast.perDayUsd) === 0) return { kind: 'quiet', days: forecast.windowDays };
  if (hasAllowance) {
    return forecast.allowanceLastsUntil
      ? { kind: 'allowance-ends', until: forecast.allowanceLastsUntil, next }
      : { kind: 'allowance-lasts' };
  }
  return forecast.balanceLastsUntil
    ? { kind: 'balance-ends', until: forecast.balanceLastsUntil }
    : { kind: 'balance-lasts' };
}
