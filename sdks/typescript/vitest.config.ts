import { defineConfig } from 'vitest/config';

// The time of a test depends on the machine, so the limit is far above it.
export default defineConfig({ test: { include: ['tests/**/*.test.ts'], testTimeout: 60_000 } });
