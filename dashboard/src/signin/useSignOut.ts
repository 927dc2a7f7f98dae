import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { forgetDrafts } from '../review/drafts';
import { noteSignOut } from './renewal';

/** Ends the session. After the next sign-in, the browser goes to `next`. */
export function useSignOut(next?: string) {
  const cache = useQueryClient();
  const navigate = useNavigate();
  return async () => {
    await api.auth.logout().catch(() => undefined);
    noteSignOut();
    // First the page goes, then its data: a page that is still there would ask for it again.
    await navigate({ to: '/signin', search: next ? { next } : {} });
    // The sign-in page is there now, and its own request would never be answered.
    cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== keys.issuers[0] });
    cache.getMutationCache().clear();
    forgetDrafts();
  };
}
