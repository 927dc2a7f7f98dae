/** The strings that the inbox needs, too. All others are loaded with the first review. */
export const shared = {
  external: 'Your own client',
  someone: 'someone',
  you: 'you',
  keyOf: (person: string) => `an API key of ${person}`,
  ruleOf: (person: string) => `a rule that ${person} made`,
  notSentDecision: 'Not sent: no connection. Nothing was decided.',
};
