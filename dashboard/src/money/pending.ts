/** The payment that this tab went to make, so that it can see it arrive. */
import type { PaymentKind } from './checkout';

export interface PendingPayment {
  account: string;
  kind: PaymentKind;
  /** What `paymentStateQuery` said before. */
  before: string;
}

const KEY = 'rota.paying';

export function pendingPayment(): PendingPayment | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as PendingPayment | null;
  } catch {
    return null;
  }
}

export const rememberPayment = (payment: PendingPayment): void =>
  sessionStorage.setItem(KEY, JSON.stringify(payment));

export const forgetPayment = (): void => sessionStorage.removeItem(KEY);
