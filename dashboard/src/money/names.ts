import { useQuery } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { agentsQuery } from '../api/queries';
import type { Grouping } from './queries';
import type { Series } from './series';
import { strings } from './strings';

export interface AgentFace {
  name: string;
  initials: string;
  rank: number;
}

/** Agents as people know them. An agent that left the catalog keeps its short name. */
export function useAgentFaces(): (agent: string) => AgentFace {
  const { data } = useQuery(agentsQuery);
  const known = useMemo(() => new Map(data?.map((agent) => [agent.name, agent])), [data]);
  return useCallback(
    (name) => {
      const agent = known.get(name);
      if (agent) return { name: agent.displayName, initials: agent.initials, rank: agent.tier };
      return { name, initials: name.slice(0, 2).toUpperCase(), rank: 3 };
    },
    [known],
  );
}

/** The names of series, as people know them. */
export function useSeriesName(grouping: Grouping): (series: Series) => string {
  const face = useAgentFaces();
  return (series) => {
    if (series.name === null) {
      return series.others === null && grouping === 'total'
        ? strings.byTotal
        : strings.others(series.others);
    }
    return grouping === 'agent' ? face(series.name).name : series.name;
  };
}
