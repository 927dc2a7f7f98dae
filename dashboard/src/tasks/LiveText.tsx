import type { Task } from '@rota/sdk';
import { useId, useLayoutEffect, useRef } from 'react';
import { useTaskText } from '../live/useTaskText';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

/** As close to the end as this, the text follows what is written. */
const END_PIXELS = 24;

/**
 * What the model is writing. The box has the same height from the start, so nothing
 * below it moves. Screen readers are told about each step once, and can read the text when they want.
 */
export function LiveText({ task }: { task: Task }) {
  const id = useId();
  const box = useRef<HTMLElement>(null);
  const follows = useRef(true);
  const shown = useTaskText(task.id);
  const text = shown?.text ?? '';
  // biome-ignore lint/correctness/useExhaustiveDependencies: the end moves with the text.
  useLayoutEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <div className="card">
      <div className="card-head">
        <h2 id={id}>{strings.writes}</h2>
        {shown?.writes && <span className="live-dot" aria-hidden="true" />}
        {/* The only words that are announced: once for each step. */}
        <span className="push small soft" role="status">
          {shown && (shown.writes ? strings.writesStep : strings.wroteStep)(shown.step)}
        </span>
      </div>
      <section
        ref={box}
        className="card-pad live-text"
        aria-labelledby={id}
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls needs the keyboard.
        tabIndex={0}
        onScroll={({ currentTarget: at }) => {
          follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < END_PIXELS;
        }}
      >
        {text ? (
          <p className="prose plain-text">
            <SafeText>{text}</SafeText>
          </p>
        ) : (
          <p className="small faint">{strings.writesNothing}</p>
        )}
      </section>
    </div>
  );
}
