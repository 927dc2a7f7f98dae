import type { Task } from '@rota/sdk';
import { lazy, Suspense, useId, useState } from 'react';
import { type JsonObject, parseExact } from '../api/exact';
import { prettyJson } from '../review/edits';
import { Values } from '../review/fields/Values';
import { fieldsOf } from '../review/schema';
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

/** Structured output as fields, with the names and in the order of the schema. */
function Data({ task, id, text }: { task: Task; id: string; text: string }) {
  const data = parseExact<JsonObject>(text);
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>{strings.output}</h2>
        <span className="push">
          <CopyButton text={prettyJson(data)} label={strings.copyJson} />
        </span>
      </div>
      <div className="card-pad">
        <Values fields={fieldsOf(task.outputSchema as JsonObject, data)} />
      </div>
    </section>
  );
}

export function Output({ task }: { task: Task }) {
  const id = useId();
  const [all, setAll] = useState(false);
  const text = task.output ?? '';
  const long = isLong(text);
  if (task.outputSchema) return <Data task={task} id={id} text={text} />;
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
