import type { Agent } from '@rota/sdk';
import { rankKey } from './strings';

export interface Filters {
  department?: string;
  rank?: string;
  open?: boolean;
}

export function select(agents: Agent[], { department, rank, open }: Filters): Agent[] {
  return agents.filter(
    (agent) =>
      (!department || agent.department === department) &&
      (!rank || rankKey(agent.tier) === rank) &&
      (!open || !agent.locked),
  );
}

export interface Section {
  department: string;
  agents: Agent[];
}

/** The agents by department, in the order of the catalog. */
export function sections(agents: Agent[]): Section[] {
  const found = new Map<string, Agent[]>();
  for (const agent of agents) {
    const section = found.get(agent.department);
    if (section) section.push(agent);
    else found.set(agent.department, [agent]);
  }
  return [...found].map(([department, members]) => ({ department, agents: members }));
}
