import type { Agent } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { agentsQuery } from '../api/queries';
import { candidatesQuery } from './queries';

const TYPING_MS = 250;

export interface Choice {
  agent: Agent;
  score: number | null;
}

export interface CandidateList {
  choices: Choice[];
  /** `found`: they fit the text. `none`: no agent does. `all`: there is no text yet. */
  kind: 'found' | 'none' | 'all';
  chosen: string | undefined;
  /** Whether `chosen` belongs to this text. While somebody types, it fits an earlier one. */
  settled: boolean;
  total: number;
  loading: boolean;
  error: unknown;
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Who fits the text. The agent that the URL names comes first, whether it fits or not. */
export function useCandidates(text: string, named: string | undefined): CandidateList {
  const words = useSettled(text.trim());
  const found = useQuery(candidatesQuery(words));
  const agents = useQuery(agentsQuery);
  const all: Choice[] = (agents.data ?? []).map((agent) => ({ agent, score: null }));
  const fitting: Choice[] = words.length > 2 ? (found.data ?? []) : [];
  const kind = fitting.length ? 'found' : words.length > 2 && found.data ? 'none' : 'all';
  const choices = kind === 'found' ? [...fitting] : all;
  if (kind === 'found' && !choices.some(({ agent }) => agent.name === named)) {
    const extra = all.find(({ agent }) => agent.name === named);
    if (extra) choices.unshift(extra);
  }
  const best = kind === 'found' ? choices.find(({ agent }) => !agent.locked) : undefined;
  return {
    choices,
    kind,
    chosen: named ?? best?.agent.name,
    settled: named !== undefined || (words === text.trim() && !found.isPlaceholderData),
    total: all.length,
    loading: found.isFetching,
    error: found.error ?? agents.error,
  };
}
