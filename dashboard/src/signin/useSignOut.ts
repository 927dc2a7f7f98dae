import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../api/client';
import { forgetDrafts } from '../review/drafts';
import { noteSignOut } from './renewal';

export function useSignOut() {
  const cache = useQueryClient();
  const navigate = useNavigate();
  return async () => {
    await api.auth.logout().catch(() => undefined);
    noteSignOut();
    // First the page goes, then its data: a page that is still there would ask for it again.
    await navigate({ to: '/signin', search: {} });
    cache.clear();
    forgetDrafts();
  };
}
