import { count, plural } from '../ui/format';

const fields: Record<string, string> = {
  name: 'The name',
  input: 'The input',
  description: 'The description',
  priority: 'The priority',
};

export const strings = {
  title: 'Many tasks',
  agent: 'Agent',
  agentKind: 'for all tasks',
  chooseAgent: 'Choose an agent',
  tasks: 'Tasks',
  tasksKind: 'one on each line, or a table',
  placeholder:
    'Check the invoice of Marlow Hotels\nCheck the invoice of Harbour Books\nCheck the invoice of Nordlicht Film',
  tableHint: 'A table has a header row with these columns, in any order:',
  tableHintEnd: 'Only name or input is needed.',
  chooseFile: 'Choose a file',
  drop: 'or drop it here',
  dropNow: 'Drop the file to read it',
  clear: 'Clear',
  tooLarge: 'The file is larger than 10 MB. Split it into smaller files.',
  notText: 'The file is not UTF-8 text. Save the table as CSV (UTF-8) and choose it again.',
  asLines: 'Each line is a task.',
  asTable: (columns: string[]) => `A table with ${columns.join(', ')}.`,
  ignored: (names: string[]) => `Not used: ${names.join(', ')}.`,

  preview: 'Preview',
  previewEmpty: 'The tasks that you paste appear here before you create them.',
  noRows: 'The table has a header row but no tasks yet.',
  views: 'Which lines',
  all: 'All',
  withProblem: 'Problems',
  columns: { line: 'Line', name: 'Name', input: 'Input', priority: 'Priority', result: 'Result' },
  more: (rows: number) => `Show ${count(rows)} more`,
  left: (rows: number) => `${count(rows)} not shown`,
  problems: {
    empty: 'This line has no name and no input.',
    tooLong: (field: string, most: number) =>
      `The ${field} has more than ${count(most)} characters.`,
    priority: (most: number) => `The priority must be a number from 0 to ${most}.`,
    unsendable: 'The text contains a character that cannot be sent. Type it again.',
    unclosed: 'A quotation mark (") is opened here and never closed.',
    tooWide:
      'This line has more cells than the header row. Put text that contains the separator in quotation marks.',
  },
  fieldProblem: (field: string, message: string) =>
    fields[field] ? `${fields[field]} ${message}.` : message,

  create: (tasks: number) => (tasks ? `Create ${plural(tasks, 'task')}` : 'Create tasks'),
  leftOut: (lines: number) =>
    `${plural(lines, 'line')} with a problem ${lines === 1 ? 'is' : 'are'} left out.`,
  atMost: 'At most',
  each: (amount: string) => `${amount} each`,

  progress: 'Lines that have a result',
  sending: (done: number, of: number) => `Creating: ${count(done)} of ${count(of)}`,
  halted: (done: number, of: number) => `Interrupted: ${count(done)} of ${count(of)} done`,
  waiting: 'The rate limit is reached. The remaining tasks will be sent in a moment.',
  stop: 'Stop',
  stopping: 'Stopping…',
  created: (tasks: number) => `${plural(tasks, 'task')} created`,
  failed: (lines: number) => `${count(lines)} not created`,
  unknown: (lines: number) => `${count(lines)} without an answer`,
  unknownHint:
    'The service did not respond for these lines, so the tasks may exist. Check the task list before you send them again.',
  lostTitle: 'No response from the service',
  lost: 'Some of these tasks may already exist. Within 24 hours, “Try again” sends the same request with the same key: no task is created twice.',
  request: 'Request',
  tryAgain: 'Try again',
  giveUp: 'Stop here',
  results: 'Results',
  resultCreated: 'Created',
  resultRefused: 'Not created',
  resultUnsent: 'Not sent',
  resultUnknown: 'No response. The task may exist.',
  resultNext: 'Waiting',
  tryFailed: (lines: number) =>
    lines === 1 ? 'Try the failed line again' : `Try the ${count(lines)} failed lines again`,
  seeTasks: 'See the tasks of this agent',
  createMore: 'Create more',
  leaveTitle: 'Leave before everything is sent?',
  leaveText:
    'Tasks that were already created are kept. This tab keeps the other lines, so you can continue later.',
  leave: 'Leave',
  stay: 'Stay',
};
