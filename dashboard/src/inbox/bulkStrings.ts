/** The texts of the dialog about several reviews. The inbox loads without them. */
export const bulkStrings = {
  leftOut: 'Not approved here, because the tool changed or its server was disconnected:',
  leftOutLong: 'Not decided here, because it is too long for a list. Open it to decide:',
  leftOutQuestions: 'Not approved here, because it needs an answer:',
  leftOutEdited: 'Not approved here, because you have edited it. Open it to approve your edits:',
  costs: (soFar: string, more: string | null) =>
    more === null ? `${soFar} so far` : `${soFar} so far, at most ${more} more`,
  rejectHint: 'All of these tasks are cancelled.',
  reason: 'Reason',
  optional: 'optional',
  reasonHint: 'Kept in the history of each task.',
  cancel: 'Cancel',
  close: 'Close',
  progress: (done: number, total: number) => `${done} of ${total} done`,
  failed: 'Not decided',
  changed: 'It changed since you read it. Nothing was decided.',
  result: (done: number, failed: number) =>
    failed ? `${done} decided, ${failed} not decided` : `${done} decided`,
  none: 'none',
  noArguments: 'No arguments.',
};
