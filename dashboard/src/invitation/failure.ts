/** Why an invitation cannot be accepted, as a page can explain it. */
import { APIError } from '@rota/sdk';

export type Failure = 'gone' | 'address' | 'seats' | 'other';

export function failureOf(error: unknown): Failure {
  if (!(error instanceof APIError)) return 'other';
  // Used, revoked, expired and unknown invitations have one answer.
  if (error.status === 404) return 'gone';
  if (error.status === 403) return 'address';
  // Members are told apart by their accounts, so only the seats are left.
  return error.status === 409 ? 'seats' : 'other';
}
