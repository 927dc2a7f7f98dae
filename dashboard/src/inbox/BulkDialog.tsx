import type { Approval } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { serversQuery } from '../api/queries';
import { budgetLeft, fingerprint, toolProblem } from '../review/data';
import { draftOf } from '../review/drafts';
import { useSeen } from '../review/useSeen';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, TextArea } from '../ui/Field';
import { usd } from '../ui/format';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { asksSomething, BulkItem } from './BulkItem';
import { bulkStrings } from './bulkStrings';
import { decisionWords } from './groups';
import { strings } from './strings';
import { useBulk } from './useBulk';

/** What is not approved together with others, and why. */
function LeftOut({ title, approvals }: { title: string; approvals: Approval[] }) {
  if (!approvals.length) return null;
  return (
    <Notice tone="wait" title={title}>
      {approvals.map((each) => (
        <p key={each.task.id}>
          <SafeText>{each.review.summary ?? each.task.name}</SafeText>
        </p>
      ))}
    </Notice>
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
  const [dropped, setDropped] = useState<ReadonlySet<string>>(new Set());
  const servers = useQuery(serversQuery).data?.servers;
  const approves = how === 'approve';
  const words = decisionWords(how, frozen);
  const incomplete = frozen.filter((each) => each.truncated);
  const whole = frozen.filter((each) => !each.truncated);
  const changed = approves
    ? whole.filter((each) => toolProblem(each.review, servers) !== null)
    : [];
  const questions = approves ? whole.filter(asksSomething) : [];
  // Approving a proposal here would discard the edits of it.
  const [edited] = useState(() =>
    approves ? whole.filter((each) => !questions.includes(each) && draftOf(each.task.id)) : [],
  );
  const leftOut = new Set([...changed, ...questions, ...edited]);
  const listed = whole.filter((each) => !leftOut.has(each));
  const chosen = listed.filter((each) => !dropped.has(each.task.id));
  const more = chosen.reduce((sum, each) => sum + (budgetLeft(each.task) ?? 0), 0);
  const choose = (id: string, yes: boolean) =>
    setDropped((before) => {
      const next = new Set(before);
      yes ? next.delete(id) : next.add(id);
      return next;
    });
  const { content, seen, readOn } = useSeen(listed.map((each) => fingerprint(each.review)).join());
  const started = useRef(false);
  const failed = [...results.values()].filter((result) => result !== true).length;
  const finished = started.current && !running;
  const submit = () => {
    if (started.current || !seen || !chosen.length) return;
    started.current = true;
    decide(chosen, how, reason);
  };
  const close = () => !running && onClose(started.current);
  return (
    <Dialog
      title={words.title(chosen.length)}
      onClose={close}
      onSubmit={submit}
      actions={
        <div className="row bulk-foot">
          <span className="small soft" role="status">
            {running && bulkStrings.progress(results.size, chosen.length)}
            {finished && bulkStrings.result(results.size - failed, failed)}
            {!started.current && !seen && (
              <button type="button" className="undo read-on" onClick={readOn}>
                {words.read}
              </button>
            )}
            {!started.current && seen && approves && more > 0 && strings.atMostMore(usd(more))}
          </span>
          <Button className="push" onClick={close} disabled={running}>
            {finished ? bulkStrings.close : bulkStrings.cancel}
          </Button>
          {!finished && (
            <Button
              type="submit"
              look={approves ? 'primary' : 'danger-solid'}
              disabled={!seen || !chosen.length}
              busy={running}
            >
              {words.button(chosen.length)}
            </Button>
          )}
        </div>
      }
    >
      {how === 'reject' && (
        <>
          <p className="soft">{bulkStrings.rejectHint}</p>
          <Field
            label={bulkStrings.reason}
            kind={bulkStrings.optional}
            hint={bulkStrings.reasonHint}
          >
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
      <LeftOut title={bulkStrings.leftOutLong} approvals={incomplete} />
      <LeftOut title={bulkStrings.leftOut} approvals={changed} />
      <LeftOut title={bulkStrings.leftOutQuestions} approvals={questions} />
      <LeftOut
        title={bulkStrings.leftOutEdited}
        approvals={edited.filter((each) => !changed.includes(each))}
      />
      <div ref={content} className="subject">
        <ol className="stack">
          {listed.map((each) => (
            <BulkItem
              key={each.task.id}
              approval={each}
              done={words.done}
              result={results.get(each.task.id)}
              chosen={!dropped.has(each.task.id)}
              onChoose={started.current ? undefined : (yes) => choose(each.task.id, yes)}
            />
          ))}
        </ol>
      </div>
    </Dialog>
  );
}
