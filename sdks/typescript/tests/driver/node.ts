/** Reads one call or step on each line, and writes each answer on a line of its own. */
import { createInterface } from 'node:readline';
import { dispatch } from './dispatch.ts';

for await (const line of createInterface({ input: process.stdin })) {
  dispatch(line, (answer) => process.stdout.write(`${answer}\n`));
}
