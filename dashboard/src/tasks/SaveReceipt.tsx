import { useMutation } from '@tanstack/react-query';
import { api } from '../api/client';
import { Button } from '../ui/Button';
import { download } from '../ui/download';
import { toast } from '../ui/toast';
import { strings } from './strings';

/** Saves the signed document about what the task did, who decided, and what it cost. */
export function SaveReceipt({
  id,
  onError,
}: {
  id: string;
  onError: (error: Error | null) => void;
}) {
  const save = useMutation({
    mutationFn: () => api.tasks.receipt(id),
    onMutate: () => onError(null),
    onSuccess: (receipt) => {
      download(`receipt-${id}.json`, 'application/json', JSON.stringify(receipt, null, 2));
      toast(strings.receiptSaved);
    },
    onError,
  });
  return (
    <Button look="quiet" size="s" icon="file" busy={save.isPending} onClick={() => save.mutate()}>
      {strings.receipt}
    </Button>
  );
}
