import type { ReviewItem } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { serversQuery } from '../api/queries';
import { Icon, type IconName } from '../ui/Icon';
import { toolName } from './CallCard';
import { isDisconnected, isQuestion } from './data';
import { useAgent } from './people';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

const ReviewRule = lazy(() =>
  import('../rules/ReviewRule').then(({ ReviewRule }) => ({ default: ReviewRule })),
);

function Way({
  icon,
  name,
  hint,
  onSelect,
}: {
  icon: IconName;
  name: string;
  hint: string;
  onSelect: () => void;
}) {
  return (
    <button className="option" type="button" onClick={onSelect}>
      <Icon name={icon} />
      <span>
        <span className="option-name">{name}</span>
        <br />
        <span className="small soft">{hint}</span>
      </span>
      <Icon name="right" />
    </button>
  );
}

export function OtherWays() {
  const { data, state, canDecide, onReject } = useReviewView();
  const agent = useAgent(data.task.assignedAgent).displayName;
  const [allowing, setAllowing] = useState<ReviewItem | null>(null);
  const canContinue = canDecide && data.review.gate !== 'run';
  const servers = useQuery(serversQuery).data?.servers;
  // Rules are only about calls of tool servers.
  const calls = (canDecide ? state.calls : [])
    .map((call) => call.item)
    .filter((item) => item.serverId && !isQuestion(item) && !isDisconnected(item, servers));
  if (!canContinue && !state.editCount) return null;
  return (
    <section aria-labelledby="other" className="stack-4">
      <h2 id="other">{strings.otherWays}</h2>
      <div className="options">
        {state.editCount > 0 && (
          <Way
            icon="undo"
            name={strings.asProposed}
            hint={strings.asProposedHint(state.editCount)}
            onSelect={state.discardEdits}
          />
        )}
        {canContinue && (
          <Way
            icon="go"
            name={strings.rejectContinue}
            hint={strings.rejectContinueHint(data.review.gate)}
            onSelect={() => onReject('continue')}
          />
        )}
        {calls.map((item) => (
          <Way
            key={item.id}
            icon="rule"
            name={calls.length > 1 ? strings.allowLikeTool(toolName(item)) : strings.allowLike}
            hint={strings.allowLikeHint}
            onSelect={() => setAllowing(item)}
          />
        ))}
      </div>
      {allowing && (
        <Suspense>
          <ReviewRule
            taskId={data.task.id}
            agent={agent}
            item={allowing}
            onClose={() => setAllowing(null)}
          />
        </Suspense>
      )}
    </section>
  );
}
