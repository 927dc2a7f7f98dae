import type { Account, Tier } from '@rota/sdk';

/** Tiers with seats. A personal account cannot have them. */
const COMPANY_TIERS: readonly Tier[] = ['CORPORATE', 'ENTERPRISE'];

/** Whether an account of this kind would have to be a company's to reach the tier. */
export const needsCompany = (tier: Tier, kind: Account['kind'] | undefined): boolean =>
  kind === 'personal' && COMPANY_TIERS.includes(tier);
