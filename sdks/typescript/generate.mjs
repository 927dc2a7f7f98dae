// Generates the client from the descriptions of both variants: node generate.mjs
//
// The variants differ in their endpoints and in the values of a few enums. The client covers
// both: the union of the paths, and the union of the values.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '@hey-api/openapi-ts';

const here = dirname(fileURLToPath(import.meta.url));
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
      [...keys].map((key) => [key, key in a ? (key in b ? union(a[key], b[key]) : a[key]) : b[key]]),
    );
  }
  return a;
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
// Requests need a body of JSON or none; the client sets the version of the API itself.
await createClient({
  input: { ...union(a, b), components: { ...union(a.components, b.components), schemas } },
  output: { path: join(here, 'src', 'generated'), clean: true },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
  logs: { level: 'warn' },
});
