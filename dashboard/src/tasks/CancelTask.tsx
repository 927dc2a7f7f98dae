import type { Task } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { usd } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { strings } from './strings';

export function CancelTask({ task, spentUsd }: { task: Task; spentUsd: number }) {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <Button look="danger" size="s" icon="stop" onClick={() => setAsks(true)}>
        {strings.cancel}
      </Button>
      {asks && <CancelDialog task={task} spentUsd={spentUsd} onClose={() => setAsks(false)} />}
    </>
  );
}

/** Says what becomes of the money before anything stops. */
function CancelDialog({
  task,
  spentUsd,
  onClose,
}: {
  task: Task;
  spentUsd: number;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => api.tasks.cancel(task),
    onSuccess: (cancelled) => {
      cache.setQueryData(keys.task(task.id), { task: cancelled });
      for (const queryKey of [keys.task(task.id), keys.tasks, keys.approvals, keys.money]) {
        cache.invalidateQueries({ queryKey });
      }
      toast(strings.cancelled);
      onClose();
    },
  });
  const { budgetUsd, run } = task.usage;
  // Of a task that was retried, only the cost of all runs together is known.
  const spent = run === 1 ? usd(spentUsd, 4) : null;
  return (
    <Dialog
      title={strings.cancelTitle}
      onClose={onClose}
      onSubmit={() => cancel.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancelNo}</Button>
          <Button look="danger-solid" type="submit" busy={cancel.isPending}>
            {strings.cancelYes}
          </Button>
        </>
      }
    >
      <p>{strings.cancelText}</p>
      {budgetUsd && !task.parentTaskId && <p>{strings.cancelHold(usd(budgetUsd), spent)}</p>}
      {task.status === 'RUNNING' && budgetUsd && <p className="small soft">{strings.cancelLate}</p>}
      {cancel.error && <ErrorNotice error={cancel.error} />}
    </Dialog>
  );
}
