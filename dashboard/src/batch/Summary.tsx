import { Button } from '../ui/Button';
import type { Outcome } from './send';
import { strings } from './strings';
import type { Sent } from './useBatch';

/** How far it is, and in the end how many tasks exist. */
export function Summary({ sent, onStop }: { sent: Sent; onStop: () => void }) {
  const outcomes = [...sent.outcomes.values()];
  const number = (...kinds: Outcome['kind'][]) =>
    outcomes.filter(({ kind }) => kinds.includes(kind)).length;
  const all = sent.batch.lines.length;
  const done = outcomes.length;
  const failed = number('refused', 'unsent');
  const unknown = number('unknown');
  const words = sent.phase === 'failed' ? strings.halted : strings.sending;
  if (sent.phase === 'ended') {
    return (
      <div role="status">
        <h2 className="batch-sum">
          {[
            strings.created(number('created')),
            failed && strings.failed(failed),
            unknown && strings.unknown(unknown),
          ]
            .filter(Boolean)
            .join(', ')}
        </h2>
      </div>
    );
  }
  return (
    <div className="stack">
      <div className="row">
        <div role="status">
          <h2 className="batch-sum num">{words(done, all)}</h2>
        </div>
        {sent.phase === 'sending' && all > 1 && (
          <Button size="s" className="push" disabled={sent.stops} onClick={onStop}>
            {sent.stops ? strings.stopping : strings.stop}
          </Button>
        )}
      </div>
      <progress className="progress" value={done} max={all} aria-label={strings.progress} />
      {sent.waits && (
        <p className="small soft" role="status">
          {strings.waiting}
        </p>
      )}
    </div>
  );
}
