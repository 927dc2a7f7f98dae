import type { Task } from '@rota/sdk';
import { useId, useState } from 'react';
import { type JsonObject, parseExact } from '../api/exact';
import { prettyJson } from '../review/edits';
import { Values } from '../review/fields/Values';
import { fieldsOf } from '../review/schema';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { LazyMarkdown, prepareMarkdown } from '../ui/LazyMarkdown';
import { isOpenStatus } from './queries';
import { strings } from './strings';

// At once, while the task is on its way.
prepareMarkdown();

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
        <LazyMarkdown>{text}</LazyMarkdown>
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
