import { Button } from '../ui/Button';
import { strings } from './strings';
import { STEP } from './useShown';

/** Below a long table: how much of it is not shown. */
export function MoreRows({ left, onMore }: { left: number; onMore: () => void }) {
  if (!left) return null;
  return (
    <p className="card-foot row">
      <span className="small faint num">{strings.left(left)}</span>
      <Button size="s" className="push" onClick={onMore}>
        {strings.more(Math.min(left, STEP))}
      </Button>
    </p>
  );
}
