import { useState } from 'react';
import { Button } from '../ui/Button';
import { useShortcuts } from '../ui/shortcuts';
import { BulkDialog } from './BulkDialog';
import { isOpenStatus } from './queries';
import { strings } from './strings';
import type { Selection } from './useSelection';

/** What can be done with the selected tasks. */
export function BulkBar({ selection }: { selection: Selection }) {
  const [asks, setAsks] = useState<'cancel' | 'retry' | null>(null);
  const tasks = [...selection.tasks.values()];
  const open = tasks.filter((task) => isOpenStatus(task.status));
  const failed = tasks.filter((task) => task.status === 'FAILED');
  useShortcuts({ Escape: selection.clear });
  return (
    <section className="bulk bulk-bar" aria-label={strings.selected(tasks.length)}>
      <span className="strong" aria-live="polite">
        {strings.selected(tasks.length)}
      </span>
      <Button look="quiet" size="s" onClick={selection.clear} shortcut="Esc">
        {strings.clearSelection}
      </Button>
      <span className="row push">
        {failed.length > 0 && (
          <Button icon="retry" onClick={() => setAsks('retry')}>
            {strings.retryMany(failed.length)}
          </Button>
        )}
        {open.length > 0 && (
          <Button look="danger" icon="stop" onClick={() => setAsks('cancel')}>
            {strings.cancelMany(open.length)}
          </Button>
        )}
      </span>
      {asks && (
        <BulkDialog
          kind={asks}
          tasks={asks === 'cancel' ? open : failed}
          onDone={(done) => selection.set(done, false)}
          onClose={() => setAsks(null)}
        />
      )}
    </section>
  );
}
