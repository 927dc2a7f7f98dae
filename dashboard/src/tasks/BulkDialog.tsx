import type { RetryFrom, Task } from '@rota/sdk';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Check } from '../ui/Field';
import { SafeText } from '../ui/SafeText';
import { Shape } from '../ui/Status';
import { type ItemResult, type ItemState, runBulk } from './bulk';
import { strings } from './strings';

const shapes = { waiting: 'pending', busy: 'running', done: 'done', failed: 'failed' } as const;

function Item({ task, result }: { task: Task; result: ItemResult }) {
  const state: ItemState = result.state;
  return (
    <li className="row-wrap">
      <span className={`status is-${shapes[state]}`}>
        <Shape shape={shapes[state]} />
        <span className="sr">{strings.bulkState[state]}</span>
      </span>
      <span className="clip">
        <SafeText>{task.name.slice(0, 160)}</SafeText>
      </span>
      {result.message && <span className="why small">{result.message}</span>}
    </li>
  );
}

function RetryChoice({ from, choose }: { from: RetryFrom; choose: (from: RetryFrom) => void }) {
  const choice = (name: RetryFrom, title: string, hint: string) => (
    <Check
      type="radio"
      name="bulk-from"
      checked={from === name}
      onChange={() => choose(name)}
      label={
        <>
          {title}
          <br />
          <span className="small soft">{hint}</span>
        </>
      }
    />
  );
  return (
    <fieldset className="stack">
      <legend className="sr">{strings.retry}</legend>
      {choice('failure', strings.fromFailure, strings.fromFailureHint)}
      {choice('start', strings.fromStart, strings.fromStartHint)}
    </fieldset>
  );
}

/** Asks once for all of them, then shows what became of each. */
export function BulkDialog({
  kind,
  tasks: given,
  onDone,
  onClose,
}: {
  kind: 'cancel' | 'retry';
  tasks: Task[];
  onDone: (done: Task[]) => void;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  // The selection changes while this runs. What was asked about stays.
  const [tasks] = useState(given);
  const [from, setFrom] = useState<RetryFrom>('failure');
  const [phase, setPhase] = useState<'ask' | 'busy' | 'done'>('ask');
  const [results, setResults] = useState<ReadonlyMap<string, ItemResult>>(new Map());
  const ended = [...results.values()];
  const done = ended.filter((result) => result.state === 'done').length;
  const failed = ended.filter((result) => result.state === 'failed').length;
  const isCancel = kind === 'cancel';

  const start = async () => {
    if (phase !== 'ask') return;
    setPhase('busy');
    await runBulk(tasks, isCancel ? { kind } : { kind: 'retry', from }, (id, result) =>
      setResults((before) => new Map(before).set(id, result)),
    );
    for (const queryKey of [keys.tasks, keys.approvals, keys.money, ['task']]) {
      cache.invalidateQueries({ queryKey });
    }
    setPhase('done');
  };
  const close = () => {
    if (phase === 'busy') return;
    onDone(tasks.filter((task) => results.get(task.id)?.state === 'done'));
    onClose();
  };
  const title = isCancel
    ? strings.cancelManyTitle(tasks.length)
    : strings.retryManyTitle(tasks.length);
  const verb = isCancel ? strings.cancelMany(tasks.length) : strings.retryMany(tasks.length);

  return (
    <Dialog
      title={title}
      onClose={close}
      onSubmit={phase === 'done' ? close : start}
      actions={
        phase === 'done' ? (
          <Button type="submit">{strings.close}</Button>
        ) : (
          <>
            <Button onClick={close} disabled={phase === 'busy'}>
              {isCancel ? strings.keep : strings.close}
            </Button>
            <Button
              type="submit"
              look={isCancel ? 'danger-solid' : 'primary'}
              busy={phase === 'busy'}
            >
              {verb}
            </Button>
          </>
        )
      }
    >
      <p className="soft">{isCancel ? strings.cancelManyText : strings.retryManyText}</p>
      {!isCancel && phase === 'ask' && <RetryChoice from={from} choose={setFrom} />}
      {phase !== 'ask' && (
        <p role="status" className="strong">
          {strings.bulkDone(done, failed)}
        </p>
      )}
      <ul className="bulk-list">
        {tasks.map((task) => (
          <Item key={task.id} task={task} result={results.get(task.id) ?? { state: 'waiting' }} />
        ))}
      </ul>
    </Dialog>
  );
}
