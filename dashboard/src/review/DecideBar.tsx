import { useRef } from 'react';
import { Button } from '../ui/Button';
import { useShortcuts } from '../ui/shortcuts';
import { isQuestion } from './data';
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
  if (chosen < calls.length) return strings.approveSome(chosen, calls.length);
  if (editCount > 0) return strings.approveEdits(editCount);
  return calls.length > 1 ? strings.approveAll(calls.length) : strings.approve;
}

const firstField = () =>
  document.querySelector<HTMLElement>(
    '.review-main :is(.form, .form-answer) :is(input, textarea, select)',
  );

function readOn(): void {
  const end = document.querySelector('.review-main .seen-end');
  // Somebody who jumped over the end goes back to it.
  if (end && end.getBoundingClientRect().bottom < 0) {
    end.scrollIntoView({ block: 'center' });
    return;
  }
  const pane = document.querySelector<HTMLElement>('.review-main')?.closest<HTMLElement>('.pane');
  const scrolls = pane && pane.scrollHeight > pane.clientHeight ? pane : window;
  scrolls.scrollBy({ top: innerHeight * 0.7 });
}

/** The decision. On a phone it takes the place of the tab bar. */
export function DecideBar({ onSnoozed, quiet }: { onSnoozed: () => void; quiet?: boolean }) {
  const { data, state, page, blocked, unread, busy, onApprove, onReject } = useReviewView();
  const words = useApproveWords();
  const later = useRef<HTMLSpanElement>(null);
  const editable =
    data.review.gate === 'tool' && state.calls.some((call) => !isQuestion(call.item));
  const size = page ? 'l' : 'm';
  const canApprove = !blocked && !unread && !busy;
  useShortcuts(
    quiet
      ? {}
      : {
          a: () => (canApprove ? onApprove() : unread && readOn()),
          e: () => firstField()?.focus(),
          r: () => onReject('stop'),
          n: () => later.current?.querySelector('button')?.click(),
        },
  );
  const hint = blocked ?? (unread ? strings.why.unread : null);
  return (
    <fieldset className={page ? 'decide decide-bar' : 'decide'} aria-label={strings.decision}>
      <Button
        look="primary"
        size={size}
        shortcut="A"
        aria-keyshortcuts="a"
        busy={busy}
        disabled={!canApprove}
        aria-describedby={hint ? 'why-not' : undefined}
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
        {unread && !blocked ? (
          <button type="button" className="undo" onClick={readOn}>
            {strings.readOn}
          </button>
        ) : null}{' '}
        {hint ?? (page ? strings.notNowHint : '')}
      </span>
      {!page && (
        <span ref={later}>
          <SnoozeMenu onSnoozed={onSnoozed} large={false} />
        </span>
      )}
    </fieldset>
  );
}
