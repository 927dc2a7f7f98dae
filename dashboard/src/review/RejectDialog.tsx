import { useState } from 'react';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Check, Field, TextArea } from '../ui/Field';
import { usd } from '../ui/format';
import { Kbd } from '../ui/Kbd';
import { ErrorNotice } from '../ui/Notice';
import { budgetLeft } from './data';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

const MAX_REASON = 2_000;

/** A reason, and what the task does next. A run that has not started cannot continue. */
export function RejectDialog({
  then,
  reason,
  onReason,
  onClose,
  onReject,
}: {
  then: 'stop' | 'continue';
  reason: string;
  onReason: (reason: string) => void;
  onClose: () => void;
  onReject: (resume: boolean) => void;
}) {
  const { data, state, busy } = useReviewView();
  const [resume, setResume] = useState(then === 'continue');
  const { gate } = data.review;
  const canContinue = gate !== 'run';
  const left = budgetLeft(data.task);
  const tooLong = Array.from(reason).length > MAX_REASON;
  const submit = () => {
    if (!tooLong && !busy) onReject(resume);
  };
  return (
    <Dialog
      title={then === 'continue' ? strings.rejectContinueTitle : strings.rejectTitle}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.backButton}</Button>
          <Button
            type="submit"
            look={resume ? 'primary' : 'danger-solid'}
            busy={busy}
            disabled={tooLong}
          >
            {resume ? strings.rejectContinue : strings.reject}
            <Kbd>⌘↵</Kbd>
          </Button>
        </>
      }
    >
      <Field
        label={resume ? strings.differently : strings.reason}
        kind={strings.optional}
        hint={strings.reasonHint}
        error={tooLong ? strings.reasonTooLong : undefined}
      >
        {(control) => (
          <TextArea
            {...control}
            rows={3}
            value={reason}
            onChange={(event) => onReason(event.target.value)}
          />
        )}
      </Field>
      {canContinue && (
        <fieldset className="stack">
          <legend className="label legend">{strings.andThen}</legend>
          <Check
            type="radio"
            name="then"
            checked={!resume}
            onChange={() => setResume(false)}
            label={
              <>
                {strings.stopTask}
                <span className="soft small block">
                  {left === null ? strings.stopHint : strings.stopHintMoney(usd(left))}
                </span>
              </>
            }
          />
          <Check
            type="radio"
            name="then"
            checked={resume}
            onChange={() => setResume(true)}
            label={
              <>
                {strings.continueWithout(gate, state.calls.length)}
                <span className="soft small block">
                  {left === null
                    ? strings.continueHint(gate)
                    : strings.continueHintMoney(usd(left))}
                </span>
              </>
            }
          />
        </fieldset>
      )}
      {state.rejection.error && <ErrorNotice error={state.rejection.error} />}
    </Dialog>
  );
}
