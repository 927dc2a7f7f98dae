// Generates a client for each variant: node generate.mjs OUTPUT DESCRIPTION…
import { basename, join } from 'node:path';
import { createClient } from '@hey-api/openapi-ts';

const [output, ...descriptions] = process.argv.slice(2);
await createClient(
  descriptions.map((input) => ({
    input,
    output: join(output, basename(input, '.json')),
    logs: { level: 'warn' },
  })),
);
