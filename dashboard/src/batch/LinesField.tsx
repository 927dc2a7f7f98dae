import { type DragEvent, useId, useRef, useState } from 'react';
import { Button } from '../ui/Button';
import { TextArea } from '../ui/Field';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { type Batch, COLUMNS } from './lines';
import { strings } from './strings';

const MAX_FILE_BYTES = 10_000_000;

/** The text of a file. Throws an error for people if it has none. */
async function textOf(file: File): Promise<string> {
  if (file.size > MAX_FILE_BYTES) throw new Error(strings.tooLarge);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(strings.notText);
  }
}

/** How the text was understood. */
function Reading({ batch: { lines, columns, ignored } }: { batch: Batch }) {
  if (!lines.length && !columns) return null;
  if (!columns) return <>{strings.asLines}</>;
  return (
    <>
      {strings.asTable(columns)}{' '}
      {ignored.length > 0 && <SafeText>{strings.ignored(ignored)}</SafeText>}
    </>
  );
}

/** Where lines or a table are pasted, or a file is dropped. */
export function LinesField({
  text,
  onText,
  batch,
}: {
  text: string;
  onText: (text: string) => void;
  batch: Batch;
}) {
  const id = useId();
  const picker = useRef<HTMLInputElement>(null);
  const [error, setError] = useState<string>();
  const [over, setOver] = useState(false);
  const change = (changed: string) => {
    setError(undefined);
    onText(changed);
  };
  const read = async (file: File | undefined) => {
    if (!file) return;
    try {
      change(await textOf(file));
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  const drag = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes('Files')) return;
    event.preventDefault();
    setOver(event.type === 'dragover');
    if (event.type === 'drop') read(event.dataTransfer.files[0]);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same.
    <div
      className="field lines-field"
      data-over={over || undefined}
      onDragOver={drag}
      onDragLeave={drag}
      onDrop={drag}
    >
      <label className="label" htmlFor={id}>
        {strings.tasks} <span className="type">{strings.tasksKind}</span>
      </label>
      <TextArea
        id={id}
        className="batch-lines"
        rows={8}
        autoFocus
        spellCheck={false}
        value={text}
        placeholder={strings.placeholder}
        aria-invalid={error ? true : undefined}
        aria-describedby={`${id}-hint ${id}-reading`}
        onChange={(event) => change(event.target.value)}
      />
      <div className="row row-wrap">
        <input
          ref={picker}
          hidden
          type="file"
          accept=".csv,.tsv,.txt,text/csv,text/tab-separated-values,text/plain"
          aria-label={strings.chooseFile}
          onChange={(event) => {
            read(event.target.files?.[0]);
            // The same file can be chosen again after it was changed.
            event.target.value = '';
          }}
        />
        <Button size="s" icon="file" onClick={() => picker.current?.click()}>
          {strings.chooseFile}
        </Button>
        <span className="small faint not-phone">{over ? strings.dropNow : strings.drop}</span>
        <span className="small soft push lines-reading" id={`${id}-reading`} role="status">
          <Reading batch={batch} />
        </span>
        {text && (
          <Button look="quiet" size="s" onClick={() => change('')}>
            {strings.clear}
          </Button>
        )}
      </div>
      <p className="hint" id={`${id}-hint`}>
        {strings.tableHint} <code>{COLUMNS.join(', ')}</code>. {strings.tableHintEnd}
      </p>
      {error && (
        <p className="error" role="alert">
          <Icon name="alert" small />
          {error}
        </p>
      )}
    </div>
  );
}
