import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

// `rota serve` serves the built files. While you work on the dashboard, `npm run dev` serves the
// source and passes requests to a `rota dev` that runs beside it.
const service = process.env.ROTA_URL ?? 'http://127.0.0.1:8080';

/** Loads `src/early.ts` as a file of its own, before everything else. */
const early: Plugin = {
  name: 'early',
  apply: 'build',
  buildStart() {
    this.emitFile({ type: 'chunk', id: 'src/early.ts', name: 'early' });
  },
  transformIndexHtml: {
    order: 'post',
    handler(_, { bundle = {} }) {
      const file = Object.values(bundle).find((each) => each.name === 'early')?.fileName;
      const attrs = { type: 'module', async: true, src: `/${file}` };
      return [{ tag: 'script', attrs, injectTo: 'head-prepend' }];
    },
  },
};

export default defineConfig({
  plugins: [react(), early],
  build: {
    outDir: '../src/rota/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        // A request costs more than the bytes of a small file, above all on a phone. Every screen
        // shares one file, and everything that a review needs is another. What only one screen
        // needs is in the file of that screen.
        codeSplitting: {
          groups: [
            {
              name: 'shared',
              test: /src[\\/](ui[\\/](?!Markdown|RunTable|diff|download)|api|shell[\\/](?!ConfirmLeave|KeyHelp)|live[\\/](?!taskText|useTaskText)|inbox[\\/](?!Bulk|Welcome|Example|welcome)|review[\\/](data|drafts|origin|people|schema|sharedStrings))/,
            },
            { name: 'review', test: /src[\\/]review[\\/]/ },
          ],
        },
      },
    },
  },
  server: { proxy: { '/api': { target: service } } },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'] },
});
