import { type DecisionResponse, type Shaping, StaleReviewError, type ToolServer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { meQuery, serversQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { useNow } from '../ui/Time';
import { toast } from '../ui/toast';
import { arrivesAlone } from './arrival';
import { fingerprint, isQuestion, type ReviewData, toolProblem } from './data';
import { useAgent, useCanApprove } from './people';
import { RejectDialog } from './RejectDialog';
import { ReviewContext } from './ReviewContext';
import { hiddenInReview } from './Subject';
import { shapedHow } from './secondPerson';
import { strings } from './strings';
import type { ReviewState } from './useReview';
import { useSeen } from './useSeen';

function blockedBy(
  state: ReviewState,
  { review }: ReviewData,
  shaped: Shaping[],
  servers: readonly ToolServer[] | undefined,
  now: number,
): string | null {
  if (state.changed) return strings.why.replaced;
  if (review.expiresAt && Date.parse(review.expiresAt) <= now) return strings.why.expired;
  const calls = state.calls.filter((call) => call.chosen);
  if (review.gate === 'tool' && !calls.length) return strings.why.nothing;
  if (calls.some((call) => isQuestion(call.item) && !Object.keys(call.edits).length)) {
    return strings.why.answer;
  }
  const problem = toolProblem({ ...review, items: calls.map((call) => call.item) }, servers);
  if (problem) return strings.why[problem];
  if (state.problems) return strings.why.problems(state.problems);
  // Edits go to a second person, whoever makes them.
  return shaped.length && !state.editCount ? strings.why.secondPerson : null;
}

function useTold() {
  const account = useAccount();
  return (words: string, id: string) =>
    toast(
      <>
        {words}{' '}
        <Link to="/$account/tasks/$id" params={{ account, id }}>
          {strings.viewTask}
        </Link>
      </>,
    );
}

/** Everything around the parts of one review: what may be decided now, and the decision. */
export function Review({
  state,
  data,
  page,
  onDone,
  children,
}: {
  state: ReviewState;
  data: ReviewData;
  page: boolean;
  /** The review has been decided, and the next one can be shown. */
  onDone: () => void;
  children: ReactNode;
}) {
  const [dialog, setDialog] = useState<'stop' | 'continue' | 'hidden' | null>(null);
  const [reason, setReason] = useState('');
  const agent = useAgent(data.task.assignedAgent).displayName;
  const { content, seen, readOn } = useSeen(fingerprint(data.review));
  const told = useTold();
  const me = useQuery(meQuery).data?.user.id;
  const chosen = state.calls.filter((call) => call.chosen).map((call) => call.item);
  const canDecide = useCanApprove();
  const shaped = canDecide ? shapedHow(data.review, chosen, me) : [];
  const servers = useQuery(serversQuery).data?.servers;
  const now = useNow();
  const blocked = canDecide ? blockedBy(state, data, shaped, servers, now) : strings.why.approver;
  const busy = state.approval.isPending || state.rejection.isPending;
  const { gate } = data.review;
  const words =
    gate === 'output'
      ? strings.approvedOutput
      : gate === 'run'
        ? strings.approvedRun(agent)
        : strings.approved(agent);
  const approve = () => {
    setDialog(null);
    state.approval.mutate(undefined, {
      onSuccess: ({ review, task }: DecisionResponse) => {
        if (review.number !== data.review.number) return told(strings.editsPassedOn, task.id);
        const left = review.items.filter((item) => item.decision === null).length;
        if (review.state === 'pending') return told(strings.approvedPart(left), task.id);
        told(words, task.id);
        arrivesAlone();
        onDone();
      },
    });
  };
  const reject = (resume: boolean) =>
    state.rejection.mutate(
      { reason, resume },
      {
        onSuccess: ({ task }) => {
          setDialog(null);
          setReason('');
          told(
            resume ? strings.rejectedContinue(agent, gate, state.calls.length) : strings.rejected,
            task.id,
          );
          arrivesAlone();
          onDone();
        },
        // The review that waits now has to be seen first. The reason stays for it.
        onError: (error) => error instanceof StaleReviewError && setDialog(null),
      },
    );
  const view = {
    state,
    data,
    page,
    content,
    canDecide,
    blocked,
    shaped,
    unread: !seen,
    readOn,
    busy,
    onApprove: () => (hiddenInReview(data) ? setDialog('hidden') : approve()),
    onReject: (then: 'stop' | 'continue') => {
      if (!canDecide) return;
      state.rejection.reset();
      setDialog(then);
    },
  };
  return (
    <ReviewContext value={view}>
      {children}
      {dialog === 'hidden' && (
        <Dialog
          title={gate === 'output' ? strings.hiddenConfirmOutput : strings.hiddenConfirm}
          onClose={() => setDialog(null)}
          actions={
            <>
              <Button onClick={() => setDialog(null)}>{strings.backButton}</Button>
              <Button look="primary" disabled={!!blocked} onClick={approve}>
                {gate === 'output' ? strings.accept : strings.approve}
              </Button>
            </>
          }
        >
          <p>{strings.hiddenConfirmText}</p>
        </Dialog>
      )}
      {(dialog === 'stop' || dialog === 'continue') && (
        <RejectDialog
          then={dialog}
          reason={reason}
          onReason={setReason}
          onClose={() => setDialog(null)}
          onReject={reject}
        />
      )}
    </ReviewContext>
  );
}
