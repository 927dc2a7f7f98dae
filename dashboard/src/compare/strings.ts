import { plural } from '../ui/format';

export const strings = {
  tasks: 'Tasks',
  title: 'Two runs side by side',
  original: 'Original',
  fork: 'Fork',
  version: (number: number) => `Version ${number}`,
  agentsModel: 'the agent’s model',
  cost: 'Cost',
  calls: 'Model calls',
  tokens: 'Tokens',
  time: 'Working time',
  steps: 'Steps',
  noSteps: 'No steps',
  noStepsYet: 'No steps yet',
  copied: 'copied',
  noOutputYet: 'No output yet',
  noOutput: 'No output',
  failed: 'The task failed',
  counts: (step: number) =>
    step
      ? `The figures cover what each task did after step ${step}, including subtasks.`
      : 'The figures cover each task from its start, including subtasks.',
  total: (number: number) => plural(number, 'step'),
};
