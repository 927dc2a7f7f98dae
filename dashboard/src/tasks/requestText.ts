/** The request that creates a task like this one, for a terminal or a program. */
import type { Task } from '@rota/sdk';

/** Characters that a person cannot see in what they paste. */
const UNSEEN = /(?! )[\p{C}\p{Z}\p{DI}]/gu;

/** What was given when the task was created, and applies to a new one. */
function body(task: Task): [string, unknown][] {
  const isAhead = task.deadline !== null && Date.parse(task.deadline) > Date.now();
  const isWhole = !task.truncated.includes('outputSchema');
  const fields: [string, unknown][] = [
    ['name', task.name],
    ['agent', task.assignedAgent],
    ['input', task.input || null],
    ['description', task.description],
    ['priority', task.priority || null],
    ['projectId', task.projectId],
    ['outputSchema', isWhole ? task.outputSchema : null],
    ['budgetCents', task.budgetCents],
    // The API refuses one that has passed.
    ['deadline', isAhead ? task.deadline : null],
  ];
  return fields.filter(([, value]) => value !== null);
}

const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0');

/** JSON in which everything is visible. */
const jsonText = (value: unknown): string =>
  JSON.stringify(value).replace(UNSEEN, (character) =>
    character
      .split('')
      .map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`)
      .join(''),
  );

/** A literal of Python in which everything is visible. */
function pythonText(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonText).join(', ')}]`;
  if (typeof value === 'object') {
    const items = Object.entries(value);
    return `{${items.map(([name, each]) => `${pythonText(name)}: ${pythonText(each)}`).join(', ')}}`;
  }
  return JSON.stringify(value).replace(UNSEEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
  });
}

/** One argument of a shell, whatever is in it. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function asCurl(task: Task, origin: string, account: string): string {
  const json = body(task)
    .map(([name, value]) => `  "${name}": ${jsonText(value)}`)
    .join(',\n');
  return [
    `curl -sS ${quoted(`${origin}/api/tasks`)}`,
    `-H "Authorization: Bearer $ROTA_TOKEN"`,
    `-H ${quoted(`X-Service-Account: ${account}`)}`,
    `-H 'Content-Type: application/json'`,
    `-H "Idempotency-Key: $(uuidgen)"`,
    `-d ${quoted(`{\n${json}\n}`)}`,
  ].join(' \\\n  ');
}

export function asPython(task: Task, origin: string, account: string): string {
  const fields = body(task)
    .map(([name, value]) => `        "${name}": ${pythonText(value)},`)
    .join('\n');
  return `import os
import uuid

import httpx

response = httpx.post(
    ${pythonText(`${origin}/api/tasks`)},
    headers={
        "Authorization": f"Bearer {os.environ['ROTA_TOKEN']}",
        "X-Service-Account": ${pythonText(account)},
        "Idempotency-Key": str(uuid.uuid4()),
    },
    json={
${fields}
    },
)
response.raise_for_status()
print(response.json()["task"]["id"])
`;
}
