import { plural } from '../ui/format';

export const strings = {
  tasks: 'Tasks',
  title: 'Two runs side by side',
  original: 'Original',
  fork: 'Fork',
  version: (number: number) => `Version ${number}`,
  agentsModel: "the agent's model",
  cost: 'Cost',
  calls: 'Model calls',
  tokens: 'Tokens',
  time: 'Worked',
  unknown: '–',
  steps: 'Steps',
  noSteps: 'No steps yet',
  copied: 'taken from the original',
  noOutput: 'No output yet',
  total: (number: number) => plural(number, 'step'),
};
