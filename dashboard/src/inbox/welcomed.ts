/** Which of the first steps a person has skipped in this browser. */
export type FirstStep = 'all' | 'task' | 'example' | 'server';

const key = (account: string, step: FirstStep) => `rota.skipped.${step}.${account}`;

export const isSkipped = (account: string, step: FirstStep): boolean =>
  localStorage.getItem(key(account, step)) === '1';

export const skip = (account: string, step: FirstStep): void =>
  localStorage.setItem(key(account, step), '1');
