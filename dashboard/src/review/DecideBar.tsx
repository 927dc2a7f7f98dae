import { useEffect, useRef, useState } from 'react';
import { Button } from '../ui/Button';
import { useShortcuts } from '../ui/shortcuts';
import { useTooSoon } from './arrival';
import { fingerprint, isQuestion } from './data';
import { useReviewView } from './ReviewContext';
import { SnoozeMenu } from './SnoozeMenu';
import { strings } from './strings';

/** "Approve with 2 edits": the button says what it does. */
function useApproveWords(): string {
  const { data, state } = useReviewView();
  const { calls, editCount } = state;
  const chosen = calls.filter((call) => call.chosen).length;
  if (data.review.gate === 'run') return strings.approveRun;
  if (data.review.gate === 'output') return strings.approveOutput;
  if (calls.length === 1 && calls.some((call) => isQuestion(call.item))) return strings.sendAnswer;
  if (editCount > 0 && data.review.secondPerson) return strings.proposeEdits(editCount);
  if (chosen < calls.length) return strings.approveSome(chosen, calls.length);
  if (editCount > 0) return strings.approveEdits(editCount);
  return calls.length > 1 ? strings.approveAll(calls.length) : strings.approve;
}

const firstField = () =>
  document.querySelector<HTMLElement>(
    '.review-main :is(.form, .form-answer) :is(input, textarea, select)',
  );

const EARLY_MS = 4_000;

/** A does nothing right after the review appeared by itself, and says so for a while. */
function useEarly(key: string) {
  const tooSoon = useTooSoon(key);
  const [at, setAt] = useState(0);
  useEffect(() => {
    if (!at) return;
    const timer = setTimeout(() => setAt(0), EARLY_MS);
    return () => clearTimeout(timer);
  }, [at]);
  const pressA = (act: () => void) => (tooSoon() ? setAt(Date.now()) : act());
  return { early: at > 0, pressA };
}

/** The decision. On a phone it takes the place of the tab bar. */
export function DecideBar({ onSnoozed, quiet }: { onSnoozed: () => void; quiet?: boolean }) {
  const view = useReviewView();
  const { data, state, page, canDecide, blocked, unread, readOn, busy, onApprove, onReject } = view;
  const words = useApproveWords();
  const later = useRef<HTMLSpanElement>(null);
  const { early, pressA } = useEarly(fingerprint(data.review));
  const editable =
    data.review.gate === 'tool' && state.calls.some((call) => !isQuestion(call.item));
  const size = page ? 'l' : 'm';
  const canApprove = !blocked && !unread && !busy;
  useShortcuts(
    quiet
      ? {}
      : {
          a: () => pressA(() => (canApprove ? onApprove() : unread && readOn())),
          e: () => firstField()?.focus(),
          r: () => onReject('stop'),
          n: () => later.current?.querySelector('button')?.click(),
        },
  );
  return (
    <fieldset
      className={page ? 'decide decide-bar' : 'decide'}
      aria-label={strings.decision}
      disabled={!canDecide}
    >
      <Button
        look="primary"
        size={size}
        shortcut="A"
        aria-keyshortcuts="a"
        busy={busy}
        disabled={!canApprove}
        aria-describedby={canApprove ? undefined : 'why-not'}
        onClick={onApprove}
      >
        {words}
      </Button>
      {editable && !page && (
        <Button shortcut="E" aria-keyshortcuts="e" onClick={() => firstField()?.focus()}>
          {strings.edit}
        </Button>
      )}
      <Button
        look="danger"
        size={size}
        shortcut="R"
        aria-keyshortcuts="r"
        disabled={busy}
        onClick={() => onReject('stop')}
      >
        {strings.reject}
      </Button>
      {page && (
        <span ref={later} className="later">
          <SnoozeMenu onSnoozed={onSnoozed} large />
        </span>
      )}
      <span className="small faint push why-not" id="why-not" role="status">
        {early ? (
          strings.why.early
        ) : unread && !blocked ? (
          <button type="button" className="undo read-on" onClick={readOn}>
            {data.review.gate === 'output' ? strings.why.unreadOutput : strings.why.unread}
          </button>
        ) : blocked ? (
          <span>{blocked}</span>
        ) : (
          page && strings.notNowHint
        )}
      </span>
      {!page && (
        <span ref={later}>
          <SnoozeMenu onSnoozed={onSnoozed} large={false} />
        </span>
      )}
    </fieldset>
  );
}
