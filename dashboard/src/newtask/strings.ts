import type { Tier } from '@rota/sdk';
import { toolWords } from '../agents/toolWords';
import { count, plural } from '../ui/format';
import type { Stops } from './draft';

const tiers: Record<Tier, string> = {
  BASIC: 'Basic',
  STANDARD: 'Standard',
  ADVANCED: 'Advanced',
  CORPORATE: 'Corporate',
  ENTERPRISE: 'Enterprise',
  BUSINESS: 'Business',
};

const ranks: Record<number, string> = { 1: 'Director', 2: 'Lead', 3: 'Specialist' };

function stops({ run, tools, output }: Stops): string {
  const parts = [
    run && 'before it starts',
    tools === 'writes' && 'before each tool call that can change something',
    tools === 'always' && 'before each tool call',
    Array.isArray(tools) && `before these tool calls: ${tools.map(toolWords).join(', ')}`,
    output && 'before the result is final',
  ].filter(Boolean) as string[];
  const text =
    parts.length > 1 ? `${parts.slice(0, -1).join(', ')}, and ${parts.at(-1)}` : parts[0];
  return text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}.` : '';
}

const times: Record<number, string> = { 1: 'once', 2: 'twice' };

export const strings = {
  title: 'New task',
  ways: 'How many',
  one: 'One',
  oneTask: 'task',
  many: 'Many',
  manyTasks: 'tasks',
  close: 'Close',
  work: 'What should be done?',
  placeholder:
    'Describe the work as you would to a colleague: what to do, with what, and what to leave out.',
  name: 'Name:',
  nameLater: 'from your first line',
  length: (now: number, most: number) => `${count(now)} of ${count(most)}`,
  tooLong: (most: number) => `At most ${count(most)} characters.`,

  who: 'Who can do this',
  asYouType: 'updates as you type',
  noFit: 'No agent matches this description. Rephrase it, or choose an agent yourself.',
  chooseFirst: 'Describe the work to see who fits, or choose one yourself.',
  atMost: (amount: string) => `at most ${amount}`,
  best: 'Best match',
  needs: (tier: Tier) => `Needs ${tiers[tier]}`,
  seePlans: 'See plans',
  locked: 'Your plan does not include this agent.',
  lockedCompany:
    'This tier is for companies. Your personal account cannot have it; switch to a company account.',
  seeAll: (total: number) => `See all ${count(total)} agents`,
  rank: (rank: number) => ranks[rank] ?? '',

  options: 'Options',
  optionsHint: 'name, description, priority, budget, deadline, start',
  nameField: 'Name',
  nameHint: 'Without one, the first line of your text is the name.',
  description: 'Description',
  descriptionKind: 'also read by the agent',
  priority: 'Priority',
  priorityKind: '0 to 10; a higher one runs first',
  budget: 'Budget',
  budgetKind: 'in US dollars',
  budgetHint: 'Without one, the budget of the agent applies. It cannot be more.',
  budgetInvalid: 'Enter an amount of at least $0.01, or leave this empty.',
  deadline: 'Deadline',
  deadlineHint: 'A task that has not ended by then fails, even if it is waiting for a person.',
  waitForGo: 'Require my approval to start',
  waitForGoHint: 'The task waits in the inbox and starts when somebody approves it.',

  quote: 'Quote',
  version: (version: number) => `version ${version}`,
  most: (tasks: number | undefined) => {
    if (tasks === undefined || tasks === 1) return 'This task can cost at most';
    return tasks ? `These ${count(tasks)} tasks can cost at most` : 'Each task can cost at most';
  },
  each: (amount: string) => `${amount} each.`,
  usual: (tasks: number) => `Of the last ${plural(tasks, 'task')}, half cost at most`,
  usualMost: 'and nine out of ten at most',
  quoting: 'Calculating the maximum cost…',
  back: 'Unused money is released.',
  chooseAgent: 'Choose an agent to see what the task can cost and where it will stop.',
  asksTitle: ({ atLeast, tools }: Stops) => {
    if (atLeast) return `Asks you at least ${times[atLeast] ?? `${atLeast} times`}`;
    return tools ? 'Asks you before tool calls' : 'Runs without asking you';
  },
  asks: stops,
  asksNothing: 'No approval is required. The agent can still ask a question.',
  asksHelpers: 'Agents that it delegates to also ask, according to their own approval policies.',
  usesTitle: (servers: number) =>
    servers ? `May use ${plural(servers, 'tool server')}` : 'Uses no tool servers',
  usesNothing: 'It works only with your text.',
  anyServer: 'any server',
  connected: 'connected',
  trouble: 'cannot be used at the moment',
  notConnected: 'not connected',
  connect: 'Connect',
  blocked: (blocked: number, of: number) =>
    `${blocked} of ${plural(of, 'tool')} blocked until you accept ${blocked === 1 ? 'it' : 'them'}.`,
  compare: 'See what changed',
  showTools: 'Show which tools',
  covered: 'Covered by your balance',
  held: (budget: string, available: string) => `${budget} of ${available} will be held.`,
  byParent: 'The parent task pays.',
  notCovered: 'Your balance does not cover it',
  missing: (budget: string, available: string) => `It needs ${budget}. ${available} is available.`,
  coversSome: (covered: number) =>
    covered
      ? `That is enough for the first ${count(covered)}. The others will not be created.`
      : 'None of them will be created.',

  start: 'Start task',
  send: 'Create task',
  startNote:
    'You can cancel at any time. You pay for the model calls made so far, including one in progress.',
  atMostShort: 'At most',
  asksShort: ({ atLeast, tools }: Stops) => {
    if (atLeast) return `asks you at least ${times[atLeast] ?? `${atLeast} times`}`;
    return tools ? 'asks before tool calls' : 'does not ask you';
  },
};
