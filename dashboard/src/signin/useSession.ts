import { useEffect } from 'react';
import { renewSession, whenSessionEnds } from '../api/client';
import { isRenewalDue } from './renewal';
import { useLeave } from './useSignOut';

const HOUR_MS = 3_600_000;

/** Keeps the session alive while a page is open, and asks to sign in again when it has ended. */
export function useSession(): void {
  const leave = useLeave();
  useEffect(() => {
    // A failure does not matter: a request will say so.
    const renew = () => isRenewalDue() && renewSession().catch(() => undefined);
    renew();
    const timer = setInterval(renew, HOUR_MS);
    // After a computer has slept.
    document.addEventListener('visibilitychange', renew);
    whenSessionEnds(() => leave(location.pathname + location.search + location.hash));
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', renew);
      whenSessionEnds(undefined);
    };
  }, [leave]);
}
