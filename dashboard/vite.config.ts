import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { compressed, early, screenFiles } from './build.ts';

// `rota serve` serves the built files. While you work on the dashboard, `npm run dev` serves the
// source and passes requests to a `rota dev` that runs beside it.
const service = process.env.ROTA_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react(), early, screenFiles, compressed],
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
        // needs is in the file of that screen. A package that several screens need is in the
        // shared file, or each of them would load the file of a review for it.
        codeSplitting: {
          groups: [
            {
              name: 'shared',
              test: /@tanstack[\\/](react-)?query.*utation|src[\\/](ui[\\/](?!Markdown|RunTable|Tabs|diff|download)|api|shell[\\/](?!ConfirmLeave|KeyHelp|ListScreen)|live[\\/](?!taskText|useTaskText)|inbox[\\/](?!Bulk|bulk|useBulk|Welcome|Example|welcome)|review[\\/](data|drafts|origin|people|schema|sharedStrings))/,
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
