// Generates the types and the operations from the descriptions of both variants: node generate.mjs
//
// The variants differ in their endpoints and in the values of a few enums. The SDK covers both: the
// union of the paths, and the union of the values.
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '@hey-api/openapi-ts';

const here = dirname(fileURLToPath(import.meta.url));
const output = join(here, 'src', 'generated');
const description = async (variant) =>
  JSON.parse(await readFile(join(here, '..', '..', 'openapi', `variant-${variant}.json`), 'utf8'));

function union(a, b) {
  if (Array.isArray(a) && Array.isArray(b)) {
    const plain = [...a, ...b].every((value) => typeof value !== 'object');
    return plain ? [...new Set([...a, ...b])] : a;
  }
  if (a && b && typeof a === 'object' && typeof b === 'object') {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return Object.fromEntries(
      [...keys].map((key) => [
        key,
        key in a ? (key in b ? union(a[key], b[key]) : a[key]) : b[key],
      ]),
    );
  }
  return a;
}

const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
const pascal = (name) => camel(`_${name}`);

/** One line for each operation, so that a bundle has only those that it uses. */
function operationsOf({ paths }) {
  const lines = [];
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      const name = operation.operationId;
      const status = '201' in operation.responses ? 201 : 200;
      const keyed = (operation.parameters ?? []).some(
        ({ $ref }) => $ref === '#/components/parameters/IdempotencyKey',
      );
      lines.push(
        `export const ${camel(name)}: Operation<types.${pascal(name)}Responses[${status}]> = ` +
          `'${method.toUpperCase()}${keyed ? '*' : ''} ${path}';`,
      );
    }
  }
  return lines.sort();
}

const a = await description('a');
const b = await description('b');
const schemas = union(a.components.schemas, b.components.schemas);
// `required` is what both variants promise.
for (const [name, schema] of Object.entries(schemas)) {
  const both = [a, b].map((variant) => variant.components.schemas[name]);
  if (both.every(Boolean)) {
    schema.required = both[0].required?.filter((field) => both[1].required?.includes(field));
  }
}
const input = { ...union(a, b), components: { ...union(a.components, b.components), schemas } };
// Read before the types are made, because the generator changes what it is given.
const operations = operationsOf(input);
await createClient({
  input,
  output: { path: output, clean: true, entryFile: false },
  plugins: ['@hey-api/typescript'],
  logs: { level: 'warn' },
});
await writeFile(
  join(output, 'operations.gen.ts'),
  [
    '// Generated from openapi/: do not edit.',
    "import type { Operation } from '../operation.ts';",
    "import type * as types from './types.gen.ts';",
    '',
    ...operations,
    '',
  ].join('\n'),
);
