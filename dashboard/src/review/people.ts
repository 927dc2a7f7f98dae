import type { Actor, Agent, PastReview, Review } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { agentsQuery, meQuery } from '../api/queries';
import { shared as strings } from './sharedStrings';

export interface KnownAgent {
  displayName: string;
  initials: string;
  rank: number;
}

/** An agent as cards show it, also one that is not in the catalog any more. */
export function agentOf(agents: readonly Agent[] | undefined, name: string | null): KnownAgent {
  const found = agents?.find((agent) => agent.name === name);
  if (found) return { displayName: found.displayName, initials: found.initials, rank: found.tier };
  if (name === null) return { displayName: strings.external, initials: 'YC', rank: 3 };
  const letters = name.split(/[^\p{L}\p{N}]+/u).map((word) => word.charAt(0));
  return { displayName: name, initials: letters.join('').slice(0, 2).toUpperCase(), rank: 3 };
}

/** Whether the caller can decide reviews and make rules in this account. */
export const useCanApprove = (): boolean => useQuery(meQuery).data?.account.approver ?? false;

export const useAgent = (name: string | null): KnownAgent =>
  agentOf(useQuery(agentsQuery).data, name);

/** "Ada Lindqvist", "you", "an API key of Ada Lindqvist", or "a rule that you made". */
export function useActorName(): (actor: Actor | null) => string {
  const me = useQuery(meQuery).data?.user.id;
  return (actor) => {
    if (!actor) return strings.someone;
    const person = actor.userId === me ? strings.you : (actor.name ?? strings.someone);
    if (actor.via === 'rule') return strings.ruleOf(person);
    return actor.via === 'key' ? strings.keyOf(person) : person;
  };
}

/** How a review ended, if it has. */
export const endOf = (review: Review, number: number | null): PastReview | undefined =>
  review.history.find((past) => past.number === number);
