export const strings = {
  name: 'Policies',
  hint: (account: string) => `Who can approve in ${account}, and what waits for approval.`,
  onlyManagers: 'Owners and admins can change the policies.',
  save: 'Save',
  saved: 'The policies are saved',
  discard: 'Discard',

  approvals: 'Approvals',
  approvers: 'Who can approve and reject',
  named: 'Approvers',
  namedDoes: 'Owners, admins, and members with the right to approve.',
  anyone: 'Every member',
  anyoneDoes: 'All members of the company, also new ones.',

  secondPerson: 'A second person approves',
  secondPersonDoes:
    'Nobody can approve what they created, edited, scheduled or retried, nor calls of tools that they accepted. Needs two approvers.',
  keepsWaiting: 'What waits now keeps this policy, and still needs a second person.',

  limit: 'Cost limit',
  limited: 'Runs with a high budget wait for approval',
  limitedDoes: 'They wait before they start.',
  above: 'Wait above',
  amount: 'dollars',
  amountWrong: 'Write an amount such as 5 or 12.50, at most 100,000.',
  toRules: 'Standing rules',
  rulesHint: 'To let an agent make some calls without a review, see',
};
