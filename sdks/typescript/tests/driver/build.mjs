// Bundles the drivers into a folder: node build.mjs FOLDER
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const [, , folder] = process.argv;
for (const [name, platform, format] of [
  ['node', 'node', 'esm'],
  ['page', 'browser', 'iife'],
]) {
  const bundle = await rolldown({ input: join(import.meta.dirname, `${name}.ts`), platform });
  await bundle.write({ file: join(folder, `${name}.mjs`), format });
  await bundle.close();
}
