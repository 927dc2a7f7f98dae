import { useSyncExternalStore } from 'react';

const wide = matchMedia('(min-width: 720px)');

/** Whether there is room for the rail, and for a review beside the list. */
export const useWide = (): boolean =>
  useSyncExternalStore(
    (listener) => {
      wide.addEventListener('change', listener);
      return () => wide.removeEventListener('change', listener);
    },
    () => wide.matches,
  );
