import type { Schedule } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { strings } from './strings';

const { deleteDialog: words } = strings;

export function DeleteDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const cache = useQueryClient();
  const account = useAccount();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationKey: keys.deleteSchedule,
    mutationFn: () => api.schedules.delete(schedule),
    onSuccess: async () => {
      await navigate({ to: '/$account/schedules', params: { account } });
      cache.removeQueries({ queryKey: keys.schedule(schedule.id) });
      cache.invalidateQueries({ queryKey: keys.schedules });
      toast(words.done(schedule.name));
    },
  });
  return (
    <Dialog
      title={words.title(schedule.name)}
      onClose={onClose}
      onSubmit={() => !remove.isPending && remove.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" look="danger-solid" busy={remove.isPending}>
            {strings.remove}
          </Button>
        </>
      }
    >
      <ul className="effects soft">
        {words.effects.map((effect) => (
          <li key={effect}>{effect}</li>
        ))}
      </ul>
      {remove.error && <ErrorNotice error={remove.error} />}
    </Dialog>
  );
}
