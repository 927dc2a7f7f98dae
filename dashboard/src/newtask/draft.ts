/** What a draft becomes: its name, where it will stop, which tool servers it needs. */
import type { AgentDetails, Gate, Tool, ToolServer } from '@rota/sdk';
import { parseDollars } from '../money/amounts';

export const MAX_TEXT = 50_000;
const MAX_NAME = 80;

/** Characters as the API counts them. */
export const lengthOf = (text: string): number => {
  let length = 0;
  for (const _ of text) length += 1;
  return length;
};

/** A name for a task, from the first line of its text: its first sentence, cut between words. */
export function nameOf(text: string): string {
  const line =
    text
      .split('\n')
      .map((each) => each.replace(/^[\s#>*+-]+/, '').trim())
      .find(Boolean) ?? '';
  const sentence = /^(.{8,}?)[.!?:;](\s|$)/u.exec(line)?.[1] ?? line;
  const characters = Array.from(sentence.replace(/[.:;,]+$/, ''));
  if (characters.length <= MAX_NAME) return characters.join('');
  const cut = characters.slice(0, MAX_NAME - 1).join('');
  const space = cut.lastIndexOf(' ');
  return `${(space > MAX_NAME / 2 ? cut.slice(0, space) : cut).replace(/[\s.,:;]+$/, '')}…`;
}

export interface NeededServer {
  /** The name in the agent's patterns; it can contain `*`. */
  name: string;
  tools: string[];
  connected: ToolServer[];
}

const matches = (pattern: string, name: string): boolean =>
  new RegExp(
    `^${pattern
      .split('*')
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*')}$`,
    'i',
  ).test(name);

/** The tool servers that an agent can use, and which connected ones they are. */
export function serversNeeded(patterns: string[], servers: ToolServer[]): NeededServer[] {
  const needed = new Map<string, string[]>();
  for (const pattern of patterns) {
    const slash = pattern.indexOf('/');
    const name = slash < 0 ? pattern : pattern.slice(0, slash);
    const tool = slash < 0 ? '*' : pattern.slice(slash + 1);
    needed.set(name, [...(needed.get(name) ?? []), tool]);
  }
  return [...needed].map(([name, tools]) => ({
    name,
    tools,
    connected: servers.filter((server) => matches(name, server.name)),
  }));
}

/** How many of a server's tools the agent may use, and how many of them wait for acceptance. */
export function blockedTools(
  { tools: patterns }: Pick<NeededServer, 'tools'>,
  tools: Pick<Tool, 'name' | 'difference'>[],
): { usable: number; blocked: number } {
  const usable = tools.filter(({ name }) => patterns.some((pattern) => matches(pattern, name)));
  const blocked = usable.filter(({ difference }) => difference.length > 0);
  return { usable: usable.length, blocked: blocked.length };
}

export interface Stops {
  run: boolean;
  /** `writes`, `always`, or patterns; null if no call needs approval. */
  tools: 'writes' | 'always' | string[] | null;
  output: boolean;
  /** How often it asks for certain. */
  atLeast: number;
}

/** Where a task of this agent waits for a person, by the gates of its quote. */
export function stopsOf({ approval }: AgentDetails, gates: Gate[]): Stops {
  const run = gates.includes('run');
  const output = gates.includes('output');
  const tools = approval.tools === 'never' ? 'writes' : approval.tools;
  return {
    run,
    tools: gates.includes('tool') ? tools : null,
    output,
    atLeast: Number(run) + Number(output),
  };
}

/** A budget as it is typed in US dollars, in cents. Null if that is not an amount. */
export const centsOf = (dollars: string): number | null => parseDollars(dollars) || null;

/** Nothing typed is fine: the budget of the agent applies. */
export const isBudget = (dollars: string): boolean => !dollars.trim() || centsOf(dollars) !== null;

/** How many tasks of this budget the available US dollars cover. */
export const tasksCovered = (availableUsd: string, budgetCents: number): number =>
  Math.floor(Math.round(Number(availableUsd) * 1_000_000) / (budgetCents * 10_000));
