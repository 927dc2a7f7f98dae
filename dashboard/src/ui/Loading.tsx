import { type ReactNode, useEffect, useState } from 'react';

/** Says that something is on its way, once that takes noticeable time. */
export function Loading({ children = 'Loading…' }: { children?: ReactNode }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p className="empty small faint" role="status">
      {late ? children : ' '}
    </p>
  );
}
