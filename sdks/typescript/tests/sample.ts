/** Code as a user writes it. The compiler checks it in its strictest mode. */
import {
  type Event,
  errors,
  type Review,
  type Rota,
  StaleReviewError,
  type Task,
  type TaskEvent,
  webhooks,
} from '@rota/sdk';

export async function tasks(client: Rota): Promise<string[]> {
  const task: Task = await client.tasks.create({ name: 'T', agent: 'process-writer', priority: 3 });
  const names: string[] = [];
  for await (const each of client.tasks.list({ status: ['FAILED', 'PENDING'], limit: 10 })) {
    names.push(each.name);
  }
  for await (const event of client.tasks.follow(task, { after: 3 })) names.push(text(event));
  const review: Review = await client.tasks.review(task.id);
  try {
    await client.tasks.approve(task, { review, decisions: [{ id: 'i', arguments: {} }] });
  } catch (error) {
    if (error instanceof StaleReviewError) names.push(String(error.review.number));
    else if (error instanceof errors.RateLimitError) names.push(String(error.retryAfterS));
    else throw error;
  }
  await client.tasks.update(task, { deadline: null, status: 'CANCELLED' });
  for (const { task, error } of await client.tasks.createBatch([{ name: 'A' }])) {
    names.push(task === null ? error.message : task.name);
  }
  const page = await client.schedules.list().firstPage();
  names.push(...page.schedules.map((schedule) => schedule.task.name));
  const key = await client.keys.create(
    { name: 'ci', scopes: ['tasks:read'], expiresAt: new Date().toISOString() },
    { idempotencyKey: 'ci' },
  );
  if (key.secret !== null) names.push(key.secret);
  const signal = AbortSignal.timeout(1_000);
  const found = await client.withOptions({ timeoutMs: 5_000 }).tasks.wait(task, { signal });
  return [...names, found.output ?? ''];
}

function text(event: TaskEvent): string {
  if ('text' in event) return event.type === 'delta' ? event.text : `${event.step}: ${event.text}`;
  const kept: Event = event;
  return `${kept.sequence + 1} ${kept.type.toUpperCase()}`;
}

export async function receive(request: Request): Promise<string> {
  const event = await webhooks.verify(await request.text(), request.headers, {
    secret: 'whsec_AAAA',
    webhookId: 'wh_1',
  });
  return `${event.accountId}: ${event.type}`;
}

export const wrong = (client: Rota) => [
  // @ts-expect-error: a field that does not exist
  client.tasks.create({ name: 'T', agnet: 'process-writer' }),
  // @ts-expect-error: a name is needed
  client.tasks.create({}),
  // @ts-expect-error: a state that does not exist
  client.tasks.list({ status: 'LOST' }),
  // @ts-expect-error: the review that was shown is needed
  client.tasks.approve('task_1', {}),
];
