import type { Gate, RetryOption, StepState } from '@rota/sdk';
import { count, plural, usd } from '../ui/format';

const gates: Record<Gate, string> = {
  run: 'before it starts',
  tool: 'before tool calls that need approval',
  output: 'before the result is final',
};

function list(parts: string[]): string {
  if (parts.length < 2) return parts.join('');
  return `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}

export const strings = {
  tasks: 'Tasks',
  newTask: 'New task',
  schedules: 'Schedules',
  allTasks: 'All tasks',
  search: 'Search tasks',
  agent: 'Agent',
  allAgents: 'All agents',
  status: 'Status',
  all: 'All',
  found: (total: number) => plural(total, 'task'),
  tooMany: (shown: number) => `The newest ${count(shown)} are listed. Filter to see older ones.`,
  columns: {
    select: 'Select',
    status: 'Status',
    name: 'Task',
    agent: 'Agent',
    cost: 'Cost',
    started: 'Started',
  },
  notStarted: 'not yet',
  noAgent: 'your own client',
  selectTask: (name: string) => `Select ${name}`,
  selectShown: 'Select the tasks on screen',
  loadingRow: 'Loading…',
  none: 'No tasks yet',
  noneHint: 'Describe some work, choose an agent, and see here what becomes of it.',
  noMatch: 'Nothing matches',
  noMatchHint: 'Search for other words, or remove a filter.',
  clearFilters: 'Clear filters',

  selected: (number: number) => `${count(number)} selected`,
  clearSelection: 'Clear',
  cancelMany: (number: number) => `Cancel ${plural(number, 'task')}`,
  retryMany: (number: number) => `Retry ${plural(number, 'failed task')}`,
  cancelManyTitle: (number: number) => `Cancel ${plural(number, 'task')}?`,
  retryManyTitle: (number: number) => `Retry ${plural(number, 'task')}?`,
  cancelManyText:
    'They stop at once. What was used is charged, and the rest of each hold goes back to your balance. A cancelled task cannot be started again.',
  retryManyText: 'Each retry holds the budget of its agent again.',
  fromFailure: 'From the failed step',
  fromFailureHint: 'Keeps the finished steps and does not pay for them again.',
  fromStart: 'From the start',
  fromStartHint: 'Runs everything again with the newest version of the agent.',
  bulkState: { waiting: 'Not yet', busy: 'Sending…', done: 'Done', failed: 'Failed' },
  bulkDone: (done: number, failed: number) =>
    failed ? `${count(done)} done, ${count(failed)} failed` : `${count(done)} done`,
  keep: 'Keep them',
  close: 'Close',

  copyAs: 'Copy as',
  copied: (what: string) => `Copied as ${what}. Set ROTA_TOKEN to an API key first.`,
  cancel: 'Cancel',
  retry: 'Retry',
  cancelTitle: 'Cancel this task?',
  cancelText: 'It stops at once and cannot be started again. Its subtasks stop with it.',
  cancelHold: (held: string, spent: string | null) =>
    `${held} is held for it. ${spent ? `${spent} of that is spent so far, and the` : 'What is spent so far is charged, and the'} rest goes back to your balance at once.`,
  cancelLate: 'If a model is answering at this moment, that answer is still charged.',
  cancelYes: 'Cancel task',
  cancelNo: 'Keep task',
  cancelled: 'Task cancelled',

  run: (number: number) => `Run ${number}`,
  priority: (number: number) => `Priority ${number}`,
  started: 'Started',
  created: 'Created',
  ended: 'ended',
  subtaskOf: 'Part of another task',
  forkOf: 'Forked from another task',
  compare: 'Compare both',
  fork: {
    fork: 'Fork',
    fromHere: 'Fork from here',
    title: 'Fork from here',
    titleStart: 'Fork from the start',
    text: 'A new task takes the steps up to here and goes on. These steps are not made or paid for again.',
    textStart: 'A new task starts with the same input.',
    writes: 'A person must approve each call that writes, whatever the agent’s policy says.',
    held: (budget: string, available: string) =>
      `${budget} of ${available} will be held. What it does not use comes back.`,
    missing: (budget: string, available: string) =>
      `It needs ${budget}, and ${available} is available.`,
    quoting: 'Working out what it costs',
    version: 'Version of the agent',
    versionName: (number: number, current: boolean) =>
      current ? `Version ${number}, as in this task` : `Version ${number}`,
    model: 'Model',
    agentsModel: 'The agent’s model',
    cancel: 'Cancel',
    create: 'Create fork',
    done: 'Fork created',
    copied: 'copied',
  },
  external: 'Run by your own client',
  facts: {
    cost: 'Cost so far',
    total: 'Cost',
    withSubtasks: (own: string) => `with subtasks, ${own} by itself`,
    held: (amount: string) => `${amount} of it still held`,
    heldAbove: (amount: string) => `${amount} left, held by its parent task`,
    most: 'At most',
    worked: 'Worked',
    waited: 'Waited',
  },
  unknown: '–',
  noTime: '0 s',

  waits: 'Waits for you',
  subtaskWaits: 'A subtask waits for you',
  review: 'Review',
  cancelsIn: 'Without a decision, it is cancelled in',

  failed: 'The task failed',
  useful: {
    tool: 'Check the tool servers',
    money: 'Top up',
    again: 'Start a new task with this text',
  },
  notRetryable: 'The same task would fail again. Change its text, or choose another agent.',
  retryFailure: 'Retry from the failed step',
  retryStart: 'Retry from the start',
  keeps: (option: RetryOption) =>
    option.keptSteps
      ? `Keeps ${plural(option.keptSteps, 'finished step')} and does not pay for ${option.keptSteps === 1 ? 'it' : 'them'} again. Approvals of finished steps still count.`
      : 'The first step failed, so everything is done again with the same version of the agent.',
  again: (option: RetryOption) =>
    option.keptSteps
      ? `Keeps the ${plural(option.keptSteps, 'step')} that the fork took, and runs everything after ${option.keptSteps === 1 ? 'it' : 'them'} again.`
      : `Runs everything again with version ${option.version} of the agent.`,
  repeats: (option: RetryOption, cost: string | undefined) =>
    `Repeats ${option.repeatedSteps ? plural(option.repeatedSteps, 'step') : 'nothing'}${cost && Number(cost) > 0 ? `, ${usd(cost, 4)} last time` : ''}`,
  more: (amount: string) => `at most ${amount} more`,
  asks: (opens: Gate[]) =>
    opens.length ? `Asks you ${list(opens.map((gate) => gates[gate]))}.` : 'Asks you nothing.',
  textChanged: 'The text has changed since its run was approved.',
  retried: 'The task runs again',
  noCredit: 'Your balance does not cover the budget of this run.',
  topUp: 'Top up',

  writes: 'What the model is writing',
  writesStep: (step: number) => `Writing step ${step}`,
  wroteStep: (step: number) => `Step ${step} written`,
  writesNothing: 'The words appear here as the model writes them.',

  output: 'Output',
  outputSoFar: 'Output so far',
  copyJson: 'Copy as JSON',
  queued: (position: number) =>
    position === 1
      ? 'next in the queue of its agent'
      : `number ${count(position)} in the queue of its agent`,
  deadline: 'deadline',
  showAll: 'Show all',
  showLess: 'Show less',

  tabs: { timeline: 'Timeline', input: 'Input', reviews: 'Reviews', raw: 'Raw steps' },
  task: 'Task',
  input: 'Input',
  description: 'Description',
  noInput: 'This task has no input. Its name says what to do.',
  actions: 'Action log',
  noReviews: 'No decision was asked for so far.',
  noSteps: 'No steps',
  noStepsYet: 'No steps yet',
  noStepsHint: 'They appear here as soon as the agent starts.',
  noStepsExternal: 'Your own client does this work, so it has no steps here.',
  noStepsEnded: 'The task ended before its first step.',

  table: 'Steps with time, tokens and cost',
  step: 'Step',
  time: 'Time',
  tokens: 'Tokens in + out',
  cost: 'Cost',
  total: 'Total',
  partialTotal: 'Total of what is shown',
  folded: 'Waiting costs nothing and is folded in the chart.',
  legend: { model: 'Model', tool: 'Tool', decision: 'Decision', fold: 'Folded waiting time' },
  showEarlier: (number: number) => `Show ${plural(number, 'earlier step')}`,
  hideSteps: (name: string) => `Hide the steps of ${name}`,
  showSteps: (name: string) => `Show the steps of ${name}`,
  delegate: 'Delegate to',
  aSubtask: 'a subtask',
  question: 'Question to a person',
  asksFor: (tools: string[]) => `Requested ${list(tools)}`,
  answers: 'Writes the answer',
  summarizes: 'Summarizes its work so far',
  works: 'Works on the next step',
  couldNot: 'Model call',
  states: {
    planned: 'planned',
    gated: 'waits for approval',
  } as Partial<Record<StepState, string>>,
  stepFailed: (took: string) => `failed, ${took}`,
  stepRejected: 'rejected',
  waited: (took: string) => `waited ${took}`,
  waitsFor: (took: string) => `waits ${took}`,
  edits: (number: number) => (number === 1 ? 'edited' : `${plural(number, 'call')} edited`),
  estimated: 'The tokens are estimated, because the provider reported none.',
  decision: {
    gate: { run: 'Start', tool: 'Tool call', output: 'Output' } as Record<Gate, string>,
    pending: 'Waits for a decision',
    approved: (who: string) => `Approved by ${who}`,
    rejected: (who: string) => `Rejected by ${who}`,
    expired: 'No decision in time',
    cancelled: 'Closed without a decision',
    person: 'a person',
    key: 'an API key',
  },
  rawArguments: 'Arguments',
  rawResult: 'Result',
  nothing: 'none',
};
