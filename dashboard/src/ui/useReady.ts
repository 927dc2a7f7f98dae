import { useDeferredValue } from 'react';

/**
 * Whether to draw what has been loaded. It turns true in a transition, so that a long list or a
 * review is drawn in short tasks, and a slow phone answers taps in between.
 */
export const useReady = (loaded: boolean): boolean => useDeferredValue(loaded, false);
