// What a developer writes against the generated client; the compiler checks it.
import { createTask, getTask, listTasks } from './variant-a';
import type { Task, TaskStatus, Tier } from './variant-a';
import { connectPassBilling } from './variant-b';

const done: TaskStatus[] = ['COMPLETED', 'CANCELLED'];
const lowest: Tier = 'BASIC';
// @ts-expect-error A status is one of six words.
const wrong: TaskStatus = 'DONE';

export async function run(): Promise<Task[]> {
  const made = await createTask({ body: { name: 'Made by a client', agent: 'process-writer' } });
  if (made.error) throw new Error(made.error.error.message);
  // A request with `dryRun` returns a quote instead.
  if (!('task' in made.data)) throw new Error(made.data.quote.maximumCostUsd);
  const found = await getTask({ path: { id: made.data.task.id } });
  const seconds: string | undefined = found.data?.task.usage.costUsd;
  const page = await listTasks({ query: { status: ['PENDING'], limit: 10 } });
  const pass = await connectPassBilling();
  console.log(lowest, wrong, seconds, pass.data?.trial?.endsAt);
  return (page.data?.tasks ?? []).filter((task) => !done.includes(task.status));
}
