/** The form of the policies: what people type, and what is sent. */
import type { AccountApprovals, PutApprovals } from '@rota/sdk';
import { parseDollars, typedDollars } from '../money/amounts';

export interface Form {
  approvers: AccountApprovals['approvers'];
  secondPerson: boolean;
  limited: boolean;
  /** In dollars, as it is typed. */
  limit: string;
}

const FIRST_CENTS = 500;
const MOST_CENTS = 10_000_000;

export const formOf = ({ approvers, secondPerson, maxCostCents }: AccountApprovals): Form => ({
  approvers,
  secondPerson,
  limited: maxCostCents !== null,
  limit: typedDollars(maxCostCents ?? FIRST_CENTS),
});

/** What the form sends. Null if the amount is not valid. */
export function approvalsOf({
  approvers,
  secondPerson,
  limited,
  limit,
}: Form): PutApprovals | null {
  const maxCostCents = limited ? parseDollars(limit) : null;
  if (limited && (maxCostCents === null || maxCostCents > MOST_CENTS)) return null;
  return { approvers, secondPerson, maxCostCents };
}

/** Whether the form says something else than what is stored. */
export const isChanged = (form: Form, stored: AccountApprovals): boolean =>
  JSON.stringify(approvalsOf(form)) !== JSON.stringify(approvalsOf(formOf(stored)));
