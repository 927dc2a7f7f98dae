/** `POST /api/tasks` answers with a task, or with a quote if the request says `dryRun`. */
import type { QuoteResponse, TaskResponse } from '@rota/sdk';
import { ok } from './client';

type Answer = Parameters<typeof ok<QuoteResponse | TaskResponse>>[0];

export async function created(answer: Answer): Promise<TaskResponse> {
  const data = await ok(answer);
  if (!('task' in data)) throw new Error('The answer is not a task.');
  return data;
}

export async function quoted(answer: Answer): Promise<QuoteResponse> {
  const data = await ok(answer);
  if (!('quote' in data)) throw new Error('The answer is not a quote.');
  return data;
}
