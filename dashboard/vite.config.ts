import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// `rota serve` serves the built files. While you work on the dashboard, `npm run dev` serves the
// source and passes requests to a `rota dev` that runs beside it.
const service = process.env.ROTA_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: '../src/rota/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  server: { proxy: { '/api': { target: service } } },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'] },
});
