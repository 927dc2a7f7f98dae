/**
 * The tools of a pattern such as `helpdesk/reply_*`, in words: "tools that begin with “reply”
 * (helpdesk)". Patterns are how an agent's file names tools.
 */
export function toolWords(pattern: string): string {
  const slash = pattern.indexOf('/');
  const server = slash < 0 ? pattern : pattern.slice(0, slash);
  const tool = slash < 0 ? '*' : pattern.slice(slash + 1);
  const where = server === '*' ? 'any server' : server;
  if (tool === '*') return `all tools of ${where}`;
  const prefix = /^([^*]*[^*_-])[_-]?\*$/.exec(tool)?.[1];
  return `${prefix ? `tools that begin with “${prefix}”` : shortTool(tool)} (${where})`;
}

/** The name of a tool, or of those that begin or end alike, without its server. */
export const shortTool = (tool: string): string =>
  tool
    .replace(/[_-]?\*/g, '…')
    .replace(/[_-]+/g, ' ')
    .trim();

/** The calls of a pattern, in short: `banking/*` as "all banking calls". */
export function shortCalls(pattern: string): string {
  const slash = pattern.indexOf('/');
  const tool = pattern.slice(slash + 1);
  const server = slash < 0 ? '*' : pattern.slice(0, slash);
  if (tool !== '*') return shortTool(tool);
  return server === '*' ? 'every tool call' : `all ${shortTool(server)} calls`;
}

/** The first few, and how many more there are. */
export const few = (names: string[], most = 3): string[] =>
  names.length <= most ? names : [...names.slice(0, most - 1), `${names.length - most + 1} more`];
