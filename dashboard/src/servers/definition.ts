/** The definition of a tool as people read and compare it. */
import type { DefinitionChange, Tool, ToolServer } from '@rota/sdk';

/** Keys in one order: the order of a server's JSON means nothing, and must not look like a change. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, sorted(each)]),
  );
}

/** Text as it is, everything else as JSON. Null for what is not there. */
export function shownValue(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'string' ? value : JSON.stringify(sorted(value), null, 2);
}

export const isText = (change: DefinitionChange): boolean =>
  [change.accepted, change.live].every((value) => value === null || typeof value === 'string');

export type Hint = 'readOnly' | 'writes' | 'destructive' | 'openWorld';

/**
 * What the server says about a tool. Without a word from it, a tool is not taken for read-only, but
 * is not called destructive either.
 */
export function hints(annotations: Tool['annotations']): Hint[] {
  const { readOnlyHint, destructiveHint, openWorldHint } = annotations ?? {};
  const writes: Hint = destructiveHint === true ? 'destructive' : 'writes';
  const found: Hint[] = [readOnlyHint === true && !destructiveHint ? 'readOnly' : writes];
  if (openWorldHint === true) found.push('openWorld');
  return found;
}

export const waitsForAcceptance = (tool: Tool): boolean => tool.difference.length > 0;

/** Stands for one definition of one tool: what a person saw of another one does not count. */
export const shownKey = (tool: Pick<Tool, 'name' | 'hash'>): string => `${tool.hash} ${tool.name}`;

/** The list to allow after one tool was switched. Names that the server lost stay in it. */
export function allowedAfter(
  server: Pick<ToolServer, 'allowedTools'>,
  tools: Pick<Tool, 'name' | 'allowed'>[],
  name: string,
  on: boolean,
): string[] {
  const allowed = new Set(
    server.allowedTools ?? tools.filter((tool) => tool.allowed).map((tool) => tool.name),
  );
  if (on) allowed.add(name);
  else allowed.delete(name);
  return [...allowed];
}
