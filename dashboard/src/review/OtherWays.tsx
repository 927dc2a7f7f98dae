import { Icon, type IconName } from '../ui/Icon';
import { useReviewView } from './ReviewContext';
import { strings } from './strings';

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
  const { data, state, onReject } = useReviewView();
  const canContinue = data.review.gate !== 'run';
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
            onSelect={state.undoAll}
          />
        )}
        {canContinue && (
          <Way
            icon="go"
            name={strings.rejectContinue}
            hint={strings.rejectContinueHint}
            onSelect={() => onReject('continue')}
          />
        )}
      </div>
    </section>
  );
}
