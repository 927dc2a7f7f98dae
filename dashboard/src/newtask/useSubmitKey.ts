import { useEffect, useRef } from 'react';

/** ⌘ Enter and Ctrl Enter send a form, wherever the focus is. */
export function useSubmitKey(submit: () => void): void {
  const latest = useRef(submit);
  useEffect(() => {
    latest.current = submit;
  });
  useEffect(() => {
    const send = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      latest.current();
    };
    addEventListener('keydown', send);
    return () => removeEventListener('keydown', send);
  }, []);
}
