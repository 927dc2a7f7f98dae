import { type ReactNode, useEffect, useRef } from 'react';
import { ErrorNotice } from './Notice';

/** An error that can be off screen, because its button is elsewhere. It brings itself into view. */
export function FormError({ error, actions }: { error: unknown; actions?: ReactNode }) {
  const ref = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another error is news again.
  useEffect(() => {
    // Bars can cover what is at the edge.
    ref.current?.scrollIntoView({ block: 'center' });
  }, [error]);
  return (
    <div ref={ref}>
      <ErrorNotice error={error} actions={actions} />
    </div>
  );
}
