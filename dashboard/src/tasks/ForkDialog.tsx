import { forkTask, type Task } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { newIdempotencyKey } from '../api/client';
import { created } from '../api/created';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Select } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { forkQuery } from './forks';
import { strings } from './strings';

const { fork: words } = strings;

/** Asks under which version and model the fork goes on. */
export function ForkDialog({
  task,
  fromStep,
  onClose,
}: {
  task: Task;
  /** 0: from the start. */
  fromStep: number;
  onClose: () => void;
}) {
  const account = useAccount();
  const cache = useQueryClient();
  const navigate = useNavigate();
  const options = useQuery(forkQuery(task.id)).data?.fork;
  const [version, setVersion] = useState(task.agentVersion ?? 1);
  const [model, setModel] = useState(task.model ?? '');
  // One key for each choice, so that a second click repeats and does not add.
  const [key, renew] = useState(newIdempotencyKey);
  const fork = useMutation({
    mutationFn: () =>
      created(
        forkTask({
          path: { id: task.id },
          body: { fromStep, agentVersion: version, ...(model && { model }) },
          headers: { 'Idempotency-Key': key },
          throwOnError: true,
        }),
      ),
    onSuccess: ({ task: made }) => {
      for (const queryKey of [keys.tasks, keys.money]) cache.invalidateQueries({ queryKey });
      toast(words.done);
      navigate({ to: '/$account/tasks/$id', params: { account, id: made.id } });
    },
  });
  const choose = (set: () => void) => {
    set();
    renew(newIdempotencyKey());
  };
  const versions = options?.versions.length ? options.versions : [version];
  return (
    <Dialog
      title={fromStep ? words.title : words.titleStart}
      onClose={onClose}
      onSubmit={() => !fork.isPending && options?.available && fork.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button look="primary" type="submit" busy={fork.isPending} disabled={!options?.available}>
            {words.create}
          </Button>
        </>
      }
    >
      <p>{fromStep ? words.text : words.textStart}</p>
      <p className="small soft">{words.writes}</p>
      <Field label={words.version}>
        {(control) => (
          <Select
            {...control}
            value={version}
            onChange={(event) => choose(() => setVersion(Number(event.target.value)))}
          >
            {versions.map((each) => (
              <option key={each} value={each}>
                {words.versionName(each, each === task.agentVersion)}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label={words.model}>
        {(control) => (
          <Select
            {...control}
            value={model}
            onChange={(event) => choose(() => setModel(event.target.value))}
          >
            {!task.model && <option value="">{words.agentsModel}</option>}
            {(options?.models ?? []).map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {options?.reason && <p className="soft">{options.reason}</p>}
      {fork.error && <ErrorNotice error={fork.error} />}
    </Dialog>
  );
}
