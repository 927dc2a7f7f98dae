import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode, startTransition } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api/cache';
import './api/client';
import { router } from './router';
import './styles.css';
import { applyTheme } from './ui/theme';

applyTheme();
const root = document.getElementById('root');
if (root) {
  // The frame in `index.html` stays until the first screen can be shown. React draws a transition
  // in small parts, so that a phone stays responsive meanwhile.
  const draw = () =>
    createRoot(root).render(
      <StrictMode>
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </StrictMode>,
    );
  router.load().finally(() => startTransition(draw));
}
