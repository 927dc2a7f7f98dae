import { Button } from '../ui/Button';
import { strings } from './strings';

/** Below a list of which not everything is loaded. */
export function More({
  shown,
  total,
  busy,
  onMore,
}: {
  shown: number;
  total: number;
  busy: boolean;
  onMore: () => void;
}) {
  return (
    <div className="card-foot small soft row">
      <span>{strings.shownOf(shown, total)}</span>
      <Button size="s" className="push" busy={busy} onClick={onMore}>
        {strings.more}
      </Button>
    </div>
  );
}
