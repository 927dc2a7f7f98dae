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
  steps: 'Steps',
  noSteps: 'No steps',
  noStepsYet: 'No steps yet',
  copied: 'taken from the original',
  noOutputYet: 'No output yet',
  noOutput: 'No output',
  failed: 'The task failed',
  counts: (step: number) =>
    step
      ? `The figures count what each of them did after step ${step}, with subtasks.`
      : 'The figures count each of them from its start, with subtasks.',
  total: (number: number) => plural(number, 'step'),
};
