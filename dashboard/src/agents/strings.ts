import { plural } from '../ui/format';

export const strings = {
  agents: 'Agents',
  allAgents: 'All agents',
  search: 'Search by name or work',
  department: 'Department',
  allDepartments: 'All',
  rank: 'Rank',
  anyRank: 'Any rank',
  openToMe: 'Only those I can use',
  columns: {
    agent: 'Agent',
    canUse: 'Can use',
    asks: 'Asks before',
    atMost: 'At most per task',
    spent: 'Spent in 30 days',
  },
  withoutTools: 'no tools',
  group: (all: number, locked: number) =>
    locked ? `${plural(all, 'agent')}, ${locked} locked` : plural(all, 'agent'),
  found: 'Best match first',
  opensWith: (tier: string) => `Needs ${tier}`,
  forCompanies: (tier: string) => `${tier}, for companies`,
  noMatch: 'No agent matches',
  noMatchHint: 'Try other words, or fewer filters.',
  clear: 'Clear search and filters',

  newTask: 'New task with this agent',
  newTaskShort: 'New task',
  seePlans: 'See plans',
  lockedTitle: (tier: string) => `This agent needs ${tier}`,
  lockedHint:
    'You can see what it may use and spend. To give it tasks and read its instructions, you need a plan that includes it.',
  lockedCompany:
    'This tier is for companies, so your personal account cannot have it. To use this agent, switch to the account of your company.',
  premium: 'Premium',
  about: 'About this agent',
  tabs: { overview: 'Overview', versions: 'Versions', runs: 'Recent tasks' },

  statistics: {
    tasks: 'Tasks in 30 days',
    success: 'Success rate',
    cost: 'Median cost',
    time: 'Median working time',
    none: '–',
    noneNote: 'No task finished yet',
    ofEnded: (completed: number, failed: number, cancelled: number) =>
      `${completed} of ${completed + failed}${cancelled ? `, excluding ${cancelled} cancelled` : ''}`,
    now: (running: number, waiting: number) =>
      [running && `${running} running`, waiting && `${waiting} waiting`].filter(Boolean).join(', '),
  },

  instructions: 'Instructions',
  instructionsLocked: 'The instructions are shown when your plan includes this agent.',
  usedFor: 'What it is for',
  showAll: (count: number) => `Show all ${count}`,
  otherNames: 'Other names',
  mayUse: 'May use',
  noTools: 'No tools. It works only with the text of the task.',
  anyServer: 'Any tool server',
  notConnected: 'Not connected',
  notConnectedHint: 'Connect a tool server with this name, and the agent can use its tools.',
  asksBefore: 'Asks before',
  limits: 'Limits',
  budget: 'One run costs at most',
  maxSteps: 'Model calls in a run',
  maxConcurrent: 'Concurrent tasks',
  model: 'Model',
  modelLocked: 'Shown when your plan includes it',
  version: 'Version',

  versions: {
    version: 'Version',
    added: 'Added',
    changed: 'Changed',
    current: 'Current',
    first: 'First version',
    nothing: 'Other fields, such as its name or description',
    compare: 'Compare two versions',
    from: 'From version',
    to: 'To version',
    settings: 'Settings',
    sameSettings: 'The settings are the same.',
    sameInstructions: 'The instructions are the same.',
    hidden: 'The instructions of these versions are shown when your plan includes them.',
    one: 'This agent has one version. When its file changes, you see the difference here.',
    option: (version: number) => `Version ${version}`,
    unchanged: (count: number) => plural(count, 'unchanged line'),
    showAll: 'Show all lines',
    showChanges: 'Show only changes',
    added1: 'Added:',
    removed1: 'Removed:',
    more: (shown: number, total: number) => `The newest ${shown} of ${total} versions.`,
  },
  fields: {
    instructions: 'Instructions',
    model: 'Model',
    tools: 'Tools',
    run: 'Asks before the run',
    calls: 'Asks before tool calls',
    output: 'Asks before the result',
    budget: 'Budget',
    steps: 'Maximum model calls',
    concurrent: 'Concurrent tasks',
    outputSchema: 'Schema of the result',
  },

  runs: {
    task: 'Task',
    status: 'Status',
    cost: 'Cost',
    created: 'Created',
    none: 'This agent has not run any tasks yet',
    noneHint: 'Tasks that you give it appear here.',
    all: 'All tasks of this agent',
  },
};

const RANKS = ['Director', 'Lead', 'Specialist'];
export const rankName = (rank: number): string => RANKS[rank - 1] ?? `Rank ${rank}`;
/** As it stands in a URL: `rank=lead`. */
export const rankKey = (rank: number): string => rankName(rank).toLowerCase();
export const ranks = RANKS.map((name, i) => ({ key: rankKey(i + 1), name }));

/** CORPORATE as people write it: Corporate. */
export const tierName = (tier: string): string => tier.charAt(0) + tier.slice(1).toLowerCase();
