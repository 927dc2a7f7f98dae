import { useEffect, useRef } from 'react';
import { ErrorNotice } from '../ui/Notice';

/** An error at the end of a long form. It brings itself into view. */
export function FormError({ error }: { error: unknown }) {
  const ref = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another error is news again.
  useEffect(() => {
    ref.current?.scrollIntoView({ block: 'nearest' });
  }, [error]);
  return (
    <div ref={ref} className="form-error">
      <ErrorNotice error={error} />
    </div>
  );
}
