/** What the service sells: `GET /api/plans`. */
import { client, type Tier } from '@rota/sdk';
import { ok } from '../api/client';

/** A tier and what it costs and gives in a month; for each seat, if it has seats. */
export interface PlanOffer {
  tier: Tier;
  /** 0 if the tier is free. */
  priceCents: number;
  allowanceCents: number;
  /** A tier with seats is for companies. */
  seats: { min: number } | null;
  /** Requests in a minute: of all kinds, and to agents. */
  ceilings: { all: number; ai: number };
}

export interface Offer {
  /** From the lowest tier to the highest. Empty if this variant does not sell plans. */
  plans: PlanOffer[];
  /** The connect pass. Null if this variant does not sell it. */
  pass: { priceCents: number } | null;
}

export const getOffer = (): Promise<Offer> =>
  ok(client.get<{ 200: Offer }, unknown, true>({ url: '/api/plans', throwOnError: true }));
