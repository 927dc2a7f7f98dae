import type { ForkOptions, ForkTask, Task } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Select } from '../ui/Field';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { ForkQuote } from './ForkQuote';
import { defaultsOf, forkQuery } from './forks';
import { MoneyError } from './MoneyError';
import { strings } from './strings';

const { fork: words } = strings;

function useCreateFork(task: Task) {
  const account = useAccount();
  const cache = useQueryClient();
  const navigate = useNavigate();
  // One key for each choice, so that a second click repeats and does not add.
  const [key, renew] = useState(newIdempotencyKey);
  const fork = useMutation({
    mutationFn: (body: ForkTask) => api.tasks.fork(task, body, { idempotencyKey: key }),
    onSuccess: (made) => {
      for (const queryKey of [keys.tasks, keys.money]) cache.invalidateQueries({ queryKey });
      toast(words.done);
      navigate({ to: '/$account/tasks/$id', params: { account, id: made.id } });
    },
  });
  return { fork, renew: () => renew(newIdempotencyKey()) };
}

interface Choice {
  version: number;
  /** Empty: the agent's. */
  model: string;
}

function Choices({
  task,
  options,
  choice,
  onChoose,
}: {
  task: Task;
  options: ForkOptions;
  choice: Choice;
  onChoose: (choice: Choice) => void;
}) {
  return (
    <>
      <Field label={words.version}>
        {(control) => (
          <Select
            {...control}
            value={choice.version}
            onChange={(event) => onChoose({ ...choice, version: Number(event.target.value) })}
          >
            {options.versions.map((each) => (
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
            value={choice.model}
            onChange={(event) => onChoose({ ...choice, model: event.target.value })}
          >
            {!task.model && <option value="">{words.agentsModel}</option>}
            {options.models.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </>
  );
}

/** Asks with which version and model the fork continues. */
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
  const { data, error } = useQuery(forkQuery(task.id));
  const options = data?.fork;
  const { fork, renew } = useCreateFork(task);
  const [chosen, choose] = useState<Choice | null>(null);
  const choice = options?.available ? (chosen ?? defaultsOf(task, options)) : null;
  const body = choice && {
    fromStep,
    agentVersion: choice.version,
    ...(choice.model && { model: choice.model }),
  };
  return (
    <Dialog
      title={fromStep ? words.title : words.titleStart}
      onClose={onClose}
      onSubmit={() => !fork.isPending && body && fork.mutate(body)}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button look="primary" type="submit" busy={fork.isPending} disabled={!body}>
            {words.create}
          </Button>
        </>
      }
    >
      <p>{fromStep ? words.text : words.textStart}</p>
      <p className="small soft">{words.writes}</p>
      {error && <ErrorNotice error={error} />}
      {!options && !error && <Loading />}
      {options && choice && (
        <Choices
          task={task}
          options={options}
          choice={choice}
          onChoose={(next) => {
            choose(next);
            renew();
          }}
        />
      )}
      {options?.reason && <p className="soft">{options.reason}</p>}
      {body && !fork.error && <ForkQuote id={task.id} body={body} />}
      {fork.error && <MoneyError error={fork.error} />}
    </Dialog>
  );
}
