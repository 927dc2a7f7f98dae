import { lazyRouteComponent } from '@tanstack/react-router';
import { Unanswered } from '../api/client';
import { strings } from './strings';

/** Whether the service answers at all. */
const isReached = (): Promise<boolean> =>
  fetch('/', { cache: 'no-store' }).then(
    (response) => response.ok,
    () => false,
  );

/**
 * A screen whose file is loaded when it is needed. If that fails, the router reloads the page once.
 * This is right after an upgrade of the service, whose files have other names. Without a connection
 * it would lose the page, so the error gets words of our own, and the next try loads the file again.
 */
export function screen<Module extends Record<string, unknown>, Name extends keyof Module & string>(
  load: () => Promise<Module>,
  name: Name,
) {
  return lazyRouteComponent(
    () =>
      load().catch(async (error: unknown) => {
        if (await isReached()) throw error;
        throw new Unanswered(strings.notLoaded, 'OFFLINE');
      }),
    name,
  );
}
