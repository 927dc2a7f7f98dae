import type { Approval } from '@rota/sdk';
import { useRef, useState } from 'react';
import type { Json } from '../api/exact';
import { argumentsOf, definitionChanged, fingerprint } from '../review/data';
import { prettyJson } from '../review/edits';
import { outputOf } from '../review/Subject';
import { useSeen } from '../review/useSeen';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, TextArea } from '../ui/Field';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Shape } from '../ui/Status';
import { strings } from './strings';
import { type Result, useBulk } from './useBulk';

/** Everything that one decision is about, as text. */
function contentOf({ task, review }: Approval): { name: string; text: string }[] {
  if (review.work) {
    return Object.entries(review.work).map(([name, value]) => ({
      name,
      text: String(value ?? ''),
    }));
  }
  if (review.gate === 'output') return [{ name: 'output', text: outputOf(review) }];
  if (review.gate === null) {
    const { name, description, input, output } = task;
    return Object.entries({ name, description, input, output }).map(([key, value]) => ({
      name: key,
      text: value ?? '',
    }));
  }
  return review.items
    .filter((item) => item.decision === null)
    .flatMap((item) =>
      Object.entries(argumentsOf(item)).map(([name, value]: [string, Json]) => ({
        name: review.items.length > 1 ? `${item.tool} · ${name}` : name,
        text: typeof value === 'string' ? value : prettyJson(value),
      })),
    );
}

function Outcome({ result, how }: { result: Result | undefined; how: 'approve' | 'reject' }) {
  if (result === undefined) return null;
  return (
    <p className={result === true ? 'status is-done' : 'status is-failed'}>
      <Shape shape={result === true ? 'done' : 'failed'} />
      {result === true ? (how === 'approve' ? strings.approved : strings.rejected) : strings.failed}
      {result !== true && <span className="bulk-why">{result}</span>}
    </p>
  );
}

function Item({
  approval,
  result,
  how,
}: {
  approval: Approval;
  result: Result | undefined;
  how: 'approve' | 'reject';
}) {
  const content = contentOf(approval);
  return (
    <li className="card card-pad-s stack bulk-item">
      <p className="strong">
        <SafeText>{approval.review.summary ?? approval.task.name}</SafeText>
      </p>
      <p className="small faint">
        <SafeText>{approval.task.name}</SafeText>
      </p>
      <Outcome result={result} how={how} />
      <dl className="diff">
        {content.map(({ name, text }) => (
          <div key={name} className="bulk-line">
            <dt>
              <SafeText>{name}</SafeText>
            </dt>
            <dd>
              {text ? <SafeText>{text}</SafeText> : <span className="faint">{strings.none}</span>}
            </dd>
          </div>
        ))}
      </dl>
      {!content.length && <p className="small soft">{strings.noArguments}</p>}
    </li>
  );
}

/** Lists everything that is decided, whole. Only then can it be decided. */
export function BulkDialog({
  how,
  selected,
  onClose,
}: {
  how: 'approve' | 'reject';
  selected: Approval[];
  onClose: (decided: boolean) => void;
}) {
  // What is decided is what was listed when the dialog opened, whatever happens meanwhile.
  const [frozen] = useState(selected);
  const [reason, setReason] = useState('');
  const { results, running, decide } = useBulk();
  const changed = how === 'approve' ? frozen.filter((each) => definitionChanged(each.review)) : [];
  const listed = frozen.filter((each) => !changed.includes(each));
  const { end, seen } = useSeen(listed.map((each) => fingerprint(each.review)).join());
  const started = useRef(false);
  const failed = [...results.values()].filter((result) => result !== true).length;
  const finished = started.current && !running;
  const submit = () => {
    if (started.current || !seen || !listed.length) return;
    started.current = true;
    decide(listed, how, reason);
  };
  const close = () => !running && onClose(started.current);
  return (
    <Dialog
      title={
        how === 'approve' ? strings.approveTitle(listed.length) : strings.rejectTitle(listed.length)
      }
      onClose={close}
      onSubmit={submit}
      actions={
        <div className="row bulk-foot">
          <span className="small soft" role="status">
            {running && strings.progress(results.size, listed.length)}
            {finished && strings.result(results.size - failed, failed)}
            {!started.current && !seen && strings.readFirst}
          </span>
          <Button className="push" onClick={close} disabled={running}>
            {finished ? strings.close : strings.back}
          </Button>
          {!finished && (
            <Button
              type="submit"
              look={how === 'approve' ? 'primary' : 'danger-solid'}
              disabled={!seen || !listed.length}
              busy={running}
            >
              {how === 'approve' ? strings.approve(listed.length) : strings.reject(listed.length)}
            </Button>
          )}
        </div>
      }
    >
      {how === 'reject' && (
        <>
          <p className="soft">{strings.rejectHint}</p>
          <Field label={strings.reason} kind={strings.optional} hint={strings.reasonHint}>
            {(control) => (
              <TextArea
                {...control}
                rows={2}
                maxLength={2_000}
                value={reason}
                onChange={(event) => setReason(event.target.value)}
              />
            )}
          </Field>
        </>
      )}
      {changed.length > 0 && (
        <Notice tone="wait" title={strings.leftOut}>
          {changed.map((each) => (
            <p key={each.task.id}>
              <SafeText>{each.review.summary ?? each.task.name}</SafeText>
            </p>
          ))}
        </Notice>
      )}
      <div className="subject">
        <ol className="stack">
          {listed.map((each) => (
            <Item key={each.task.id} approval={each} how={how} result={results.get(each.task.id)} />
          ))}
        </ol>
        <div ref={end} className="seen-end" />
      </div>
    </Dialog>
  );
}
