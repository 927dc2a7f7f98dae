import type { Schedule } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { createBody, emptyForm, formOf, isReady, patchBody, type ScheduleForm } from './form';
import { ScheduleFields, standsAtField } from './ScheduleFields';
import { strings } from './strings';

const { form: words } = strings;

/** One key for one content: sending the same again never creates two schedules. */
function useKeyFor() {
  const last = useRef({ body: '', key: '' });
  return (body: string): string => {
    if (last.current.body !== body) last.current = { body, key: newIdempotencyKey() };
    return last.current.key;
  };
}

/** Creates a schedule, or edits the given one. */
export function ScheduleDialog({
  schedule,
  onClose,
}: {
  schedule?: Schedule;
  onClose: () => void;
}) {
  const account = useAccount();
  const navigate = useNavigate();
  const cache = useQueryClient();
  const keyFor = useKeyFor();
  const [form, setForm] = useState<ScheduleForm>(schedule ? formOf(schedule) : emptyForm);
  // As it was opened: what somebody else changes meanwhile is not a change of this form.
  const [opened] = useState(schedule);
  const patch = schedule && opened && patchBody(opened, form, schedule.task);
  const save = useMutation({
    mutationFn: () => {
      if (schedule && patch) return api.schedules.update(schedule, patch);
      const body = createBody(form);
      return api.schedules.create(body, { idempotencyKey: keyFor(JSON.stringify(body)) });
    },
    onSuccess: async (saved) => {
      await cache.invalidateQueries({ queryKey: keys.schedules });
      onClose();
      if (schedule) toast(words.saved);
      else {
        await navigate({
          to: '/$account/schedules/$id',
          params: { account, id: saved.id },
        });
      }
    },
  });
  const ready = isReady(form) && !(patch && Object.keys(patch).length === 0);
  return (
    <Dialog
      title={schedule ? words.editTitle : words.createTitle}
      onClose={onClose}
      onSubmit={() => ready && !save.isPending && save.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" look="primary" busy={save.isPending} disabled={!ready}>
            {schedule ? words.save : words.create}
          </Button>
        </>
      }
    >
      <ScheduleFields
        form={form}
        error={save.error}
        onChange={(changed) => setForm((old) => ({ ...old, ...changed }))}
      />
      {save.error && !standsAtField(save.error) && <ErrorNotice error={save.error} />}
    </Dialog>
  );
}
