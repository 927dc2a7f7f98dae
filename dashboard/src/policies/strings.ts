export const strings = {
  name: 'Policies',
  hint: (account: string) => `Who can approve in ${account}, and what waits for approval.`,
  onlyManagers: 'Owners and admins can change the policies.',
  save: 'Save',
  saved: 'Policies saved',
  discard: 'Discard',

  approvals: 'Approvals',
  approvers: 'Who can approve and reject',
  named: 'Approvers',
  namedDoes: 'Owners, admins, and members with the right to approve.',
  anyone: 'Every member',
  anyoneDoes: 'All members of the company, including new ones.',

  secondPerson: 'A second person approves',
  secondPersonDoes:
    'People cannot approve what they created, edited, scheduled or retried, or calls to tools that they accepted. Requires two approvers.',
  keepsWaiting: 'Pending reviews keep this policy and still need a second person.',

  limit: 'Cost limit',
  limited: 'Runs with a high budget wait for approval',
  limitedDoes: 'They wait before they start.',
  above: 'Require approval above',
  amount: 'dollars',
  amountWrong: 'Enter an amount such as 5 or 12.50, at most 100,000.',
  toRules: 'Standing rules',
  rulesHint: 'To let an agent make some calls without a review, see',
};
