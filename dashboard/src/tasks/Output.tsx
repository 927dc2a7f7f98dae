import type { Task } from '@rota/sdk';
import { lazy, Suspense, useId, useState } from 'react';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { SafeText } from '../ui/SafeText';
import { isOpenStatus } from './queries';
import { strings } from './strings';

// The parser of Markdown is not part of what every screen loads.
const Markdown = lazy(async () => ({ default: (await import('../ui/Markdown')).Markdown }));

const LONG_CHARACTERS = 1_800;
const LONG_LINES = 24;

const isLong = (text: string): boolean =>
  text.length > LONG_CHARACTERS || text.split('\n', LONG_LINES + 1).length > LONG_LINES;

export function Output({ task }: { task: Task }) {
  const id = useId();
  const [all, setAll] = useState(false);
  const text = task.output ?? '';
  const long = isLong(text);
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>{isOpenStatus(task.status) ? strings.outputSoFar : strings.output}</h2>
        <span className="push">
          <CopyButton text={text} />
        </span>
      </div>
      <div className={long && !all ? 'card-pad output output-cut' : 'card-pad output'}>
        <Suspense
          fallback={
            <p className="prose plain-text">
              <SafeText>{text}</SafeText>
            </p>
          }
        >
          <Markdown>{text}</Markdown>
        </Suspense>
      </div>
      {long && (
        <div className="card-foot">
          <Button size="s" look="quiet" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? strings.showLess : strings.showAll}
          </Button>
        </div>
      )}
    </section>
  );
}
