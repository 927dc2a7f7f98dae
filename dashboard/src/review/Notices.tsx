import { errors, StaleReviewError } from '@rota/sdk';
import { useEffect, useRef } from 'react';
import { useConnection } from '../live/LiveProvider';
import { Button } from '../ui/Button';
import { FormError } from '../ui/FormError';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { endOf, useActorName } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

/** What became of the review that was on screen, if another one waits now. */
function Earlier() {
  const { data, state } = useReviewView();
  const nameOf = useActorName();
  const past = state.latest && endOf(state.latest.review, data.review.number);
  if (!past?.decidedBy) return null;
  const how = strings.states[past.state].toLowerCase();
  return (
    <p>
      <SafeText>{strings.earlierEnded(how, nameOf(past.decidedBy))}</SafeText>
    </p>
  );
}

function Changed() {
  const { state } = useReviewView();
  return (
    <div role="alert">
      <Notice
        tone="wait"
        title={strings.changedTitle}
        actions={<Button onClick={state.showLatest}>{strings.showNew}</Button>}
      >
        <p>{strings.changedText}</p>
        <Earlier />
      </Notice>
    </div>
  );
}

function Replaced() {
  const { state } = useReviewView();
  const { replaced } = state;
  const ref = useRef<HTMLDivElement>(null);
  // The person has to see that this is another review.
  useEffect(() => {
    if (replaced) ref.current?.scrollIntoView({ block: 'center' });
  }, [replaced]);
  if (!replaced) return null;
  return (
    <div role="alert" ref={ref}>
      <Notice tone="wait" title={replaced.refused ? strings.refusedTitle : strings.changedTitle}>
        <p>
          {strings.refusedText}{' '}
          {replaced.edits === 'kept' && state.editCount > 0 && strings.editsKept(state.editCount)}
          {replaced.edits === 'dropped' && strings.editsDropped}
        </p>
      </Notice>
    </div>
  );
}

function Offline() {
  return (
    <div role="status">
      <Notice tone="wait" title={strings.offlineTitle}>
        {strings.offlineText}
      </Notice>
    </div>
  );
}

/** Says who can decide instead of this person. */
function ApproversOnly() {
  return (
    <Notice tone="wait" title={strings.approversTitle}>
      {strings.approversText}
    </Notice>
  );
}

/** Says why this person cannot approve, and what they can do. */
function NeedsSecondPerson() {
  const { data, shaped } = useReviewView();
  const words = strings.secondPerson;
  if (!shaped.length) return null;
  return (
    <Notice tone="wait" title={words.title}>
      {shaped.map((how) => (
        <p key={how}>{words.because[how]}</p>
      ))}
      <p>
        {words.next} {data.review.items.length > 0 && words.editsGoOn}
      </p>
    </Notice>
  );
}

/** What a person must know before anything else. */
export function Notices() {
  const { state, shaped, canDecide } = useReviewView();
  const offline = useConnection() === 'offline';
  const error = state.approval.error ?? state.rejection.error;
  // A refused decision is explained by the review that waits now.
  const explained =
    (error instanceof StaleReviewError && state.replaced?.refused) ||
    (error instanceof errors.SecondPersonRequiredError && shaped.length > 0);
  return (
    <>
      {state.changed ? <Changed /> : <Replaced />}
      {canDecide ? <NeedsSecondPerson /> : <ApproversOnly />}
      {offline && <Offline />}
      {error && !explained && <FormError error={error} />}
    </>
  );
}
