/** The cache of what the API answered. Server state lives here and nowhere else. */
import { APIError } from '@rota/sdk';
import { QueryClient } from '@tanstack/react-query';

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // The event stream says when something changed, so data is not old by itself.
      staleTime: 30_000,
      gcTime: 10 * 60_000,
      refetchOnWindowFocus: true,
      retry: (count, error) =>
        count < 3 && (!(error instanceof APIError) || error.status === 0 || error.status >= 500),
      retryDelay: (attempt) => Math.min(500 * 2 ** attempt, 8_000),
    },
    // Nothing that a person did is kept and sent later: without a network, it fails at once.
    mutations: { retry: false, networkMode: 'always' },
  },
});
