import { useEffect, useState } from 'react';
import { api } from '../api/client';
import { pauseAfter } from './stream';
import { type StepText, withEvent } from './taskText';

/** How often the screen shows what has arrived. Faster than this, nobody reads it. */
const SHOW_MS = 80;

/** The text that a model writes for this task, while the page is visible. */
export function useTaskText(id: string): StepText | null {
  const [shown, setShown] = useState<StepText | null>(null);
  useEffect(() => {
    let text: StepText | null = null;
    let last: number | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let stop = new AbortController();

    const show = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setShown(text);
      }, SHOW_MS);
    };

    let failures = 0;

    async function read(signal: AbortSignal): Promise<void> {
      const stream = api.tasks.follow(id, { after: last, signal, reconnect: false });
      for await (const event of stream) {
        failures = 0;
        if ('sequence' in event) last = event.sequence;
        text = withEvent(text, event);
        show();
      }
    }

    async function follow(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          await read(signal);
        } catch {
          failures += 1;
        }
        await pauseAfter(failures, signal);
      }
    }

    // A browser opens only six HTTP/1.1 connections, so hidden pages give theirs back.
    const change = () => {
      stop.abort();
      stop = new AbortController();
      if (!document.hidden) follow(stop.signal);
    };
    document.addEventListener('visibilitychange', change);
    change();
    return () => {
      document.removeEventListener('visibilitychange', change);
      stop.abort();
      clearTimeout(timer);
    };
  }, [id]);
  return shown;
}
