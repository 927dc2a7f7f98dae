import { errors } from '@rota/sdk';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useCallback } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { forgetKept } from '../shell/kept';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { noteSignOut, wasSignedIn } from './renewal';
import { strings } from './strings';

/** Leaves for the sign-in page, without the data of the person. */
export function useLeave() {
  const cache = useQueryClient();
  const navigate = useNavigate();
  return useCallback(
    async (next?: string) => {
      // First the page goes, then its data: a page that is still there would ask for it again.
      await navigate({ to: '/signin', search: next ? { next } : {} });
      // The sign-in page is there now, and its own request would never be answered.
      cache.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== keys.issuers[0] });
      cache.getMutationCache().clear();
      // Who has not signed out continues with what they typed after the next sign-in.
      if (wasSignedIn()) return;
      forgetKept();
    },
    [cache, navigate],
  );
}

/** Ends the session. After the next sign-in, the browser goes to `next`. */
export function useSignOut(next?: string) {
  const leave = useLeave();
  return async () => {
    try {
      await api.auth.logout();
    } catch (error) {
      // Only a session that has ended already needs no end. Otherwise the cookie still works.
      if (!(error instanceof errors.AuthenticationError)) {
        const why = error instanceof Error ? error.message : String(error);
        toast(<SafeText>{strings.notSignedOut(why)}</SafeText>, 'alert');
        return;
      }
    }
    noteSignOut();
    await leave(next);
  };
}
