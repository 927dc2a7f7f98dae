import type { AgentDetails } from '@rota/sdk';
import { few, shortCalls } from './toolWords';

type Policy = AgentDetails['approval'];

export interface Ask {
  gate: 'run' | 'tools' | 'output';
  asks: boolean;
  sentence: string;
  /** The tools that the sentence is about, as patterns. */
  patterns: string[];
}

/** When a person has to approve, in plain sentences: the run, the tool calls, the result. */
export function asks(policy: Policy, tools: string[]): Ask[] {
  return [
    {
      gate: 'run',
      asks: policy.run,
      sentence: policy.run
        ? 'Before each run starts, a person approves it.'
        : 'It starts immediately.',
      patterns: [],
    },
    toolCalls(policy.tools, tools),
    {
      gate: 'output',
      asks: policy.output,
      sentence: policy.output
        ? 'Before the task is completed, a person accepts the result.'
        : 'Its result does not need approval.',
      patterns: [],
    },
  ];
}

function toolCalls(policy: Policy['tools'], tools: string[]): Ask {
  const ask = (asks: boolean, sentence: string, patterns: string[] = []): Ask => ({
    gate: 'tools',
    asks,
    sentence,
    patterns,
  });
  if (!tools.length) return ask(false, 'It has no tools to call.');
  if (policy === 'never') return ask(false, 'It calls its tools without asking.');
  if (policy === 'always') return ask(true, 'Before every tool call, a person approves it.');
  if (policy === 'writes') {
    return ask(
      true,
      'Before every call of a tool that its server does not mark as read-only, a person approves it.',
    );
  }
  if (!policy.length) return ask(false, 'It calls its tools without asking.');
  return ask(true, 'A person approves every call to these tools:', policy);
}

function calls(policy: Policy['tools'], tools: string[]): string[] {
  if (!tools.length || policy === 'never') return [];
  if (policy === 'always') return ['every tool call'];
  if (policy === 'writes') return ['calls that change something'];
  return few(policy.map(shortCalls));
}

/** The same in a few words, for a table: "all banking calls and the result". */
export function asksBefore(policy: Policy, tools: string[]): string {
  const found = [
    ...(policy.run ? ['each run'] : []),
    ...calls(policy.tools, tools),
    ...(policy.output ? ['the result'] : []),
  ];
  if (!found.length) return 'nothing';
  return found.length > 1
    ? `${found.slice(0, -1).join(', ')} and ${found.at(-1)}`
    : String(found[0]);
}

export interface ToolGroup {
  server: string;
  tools: string[];
}

/** Patterns such as `crm/get_*` by their server, in the order of the agent's file. */
export function byServer(patterns: string[]): ToolGroup[] {
  const groups = new Map<string, string[]>();
  for (const pattern of patterns) {
    const slash = pattern.indexOf('/');
    const server = slash < 0 ? '*' : pattern.slice(0, slash);
    const tool = pattern.slice(slash + 1);
    groups.set(server, [...(groups.get(server) ?? []), tool]);
  }
  return [...groups].map(([server, tools]) => ({ server, tools }));
}
