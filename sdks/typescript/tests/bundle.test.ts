/** What the client adds to a page. */
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { expect, test } from 'vitest';

const LIMIT_KB = 25;
const index = join(import.meta.dirname, '..', 'src', 'index.ts');

/** The bytes of a page's script, minified and compressed. */
async function sizeOf(code: string): Promise<number> {
  const bundle = await rolldown({
    input: 'page',
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === 'page' ? id : null),
        load: (id) => (id === 'page' ? code : null),
      },
    ],
  });
  const { output } = await bundle.generate({ format: 'esm', minify: true });
  await bundle.close();
  expect(output).toHaveLength(1);
  return gzipSync(output[0].code).length;
}

test('the client is small, and what is not used is not there', async () => {
  const from = `from ${JSON.stringify(index)}`;
  const client = await sizeOf(
    `import { Rota } ${from}; for await (const e of new Rota().tasks.follow('t')) console.log(e);`,
  );
  const webhooks = await sizeOf(`import { webhooks } ${from}; console.log(webhooks.verify);`);
  const types = await sizeOf(`import ${JSON.stringify(index)};`);
  console.log(`client ${client / 1000} KB, webhooks ${webhooks / 1000} KB, nothing ${types} bytes`);
  expect(client).toBeLessThanOrEqual(LIMIT_KB * 1000);
  expect(webhooks).toBeLessThan(client / 2);
  expect(types).toBeLessThan(100);
});
