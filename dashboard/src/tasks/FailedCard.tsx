import type { RetryFrom, RetryOption, Task } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button, buttonClass } from '../ui/Button';
import { usd } from '../ui/format';
import { Icon } from '../ui/Icon';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { MoneyError } from './MoneyError';
import { retryKeys, retryQuery } from './queries';
import { strings } from './strings';

/** A longer text does not fit into a link. */
const MAX_LINK_TEXT = 4_000;

const retryWord = (from: RetryFrom): string =>
  from === 'failure' ? strings.retryFailure : strings.retryStart;

function useRetry(task: Task) {
  const cache = useQueryClient();
  const [idempotencyKeys, renew] = useState(retryKeys);
  return useMutation({
    mutationFn: (from: RetryFrom) =>
      api.tasks.retry(task, { from }, { idempotencyKey: idempotencyKeys[from] }),
    onSuccess: (retried) => {
      renew(retryKeys());
      cache.setQueryData(keys.task(task.id), { task: retried });
      for (const queryKey of [keys.task(task.id), keys.tasks, keys.money]) {
        cache.invalidateQueries({ queryKey });
      }
      toast(strings.retried);
    },
  });
}

/** Why the task failed, and what each retry would repeat, cost and ask. */
export function FailedCard({ task }: { task: Task }) {
  const id = useId();
  const quote = useQuery(retryQuery(task.id));
  const retry = useRetry(task);
  const [chosen, choose] = useState<RetryFrom | null>(null);
  const options = quote.data?.retry.options ?? [];
  // The way that repeats less comes first.
  const sorted = [...options].sort((a) => (a.from === 'failure' ? -1 : 1));
  const from = chosen ?? sorted[0]?.from ?? 'start';
  const kept = options.find((option) => option.from === 'failure')?.keptCostUsd;
  return (
    <section className="card" aria-labelledby={id}>
      <div className="notice notice-bad notice-top">
        <Icon name="alert" />
        <div className="stack">
          <h2 id={id}>{strings.failed}</h2>
          {task.error && (
            <p className="clamp-6">
              <SafeText>{task.error.message}</SafeText>
            </p>
          )}
          {task.error && (
            <p className="small soft">
              {!task.error.retryable && `${strings.notRetryable} `}
              <span className="mono">
                <SafeText>{task.error.code}</SafeText>
              </span>
            </p>
          )}
        </div>
      </div>
      {quote.error && <ErrorNotice error={quote.error} />}
      {quote.data?.retry.reason && <p className="card-pad soft">{quote.data.retry.reason}</p>}
      {sorted.length > 0 && (
        <fieldset className="choices">
          <legend className="sr">{strings.retry}</legend>
          {sorted.map((option) => (
            <Choice
              key={option.from}
              option={option}
              lastCost={option.from === 'start' ? kept : undefined}
              checked={option.from === from}
              onChoose={() => choose(option.from)}
            />
          ))}
        </fieldset>
      )}
      {retry.error && (
        <div className="card-pad-s">
          <MoneyError error={retry.error} />
        </div>
      )}
      <div className="card-foot row row-wrap">
        {quote.data?.retry.available && (
          <Button
            look="primary"
            icon="retry"
            busy={retry.isPending}
            onClick={() => retry.mutate(from)}
          >
            {options.length ? retryWord(from) : strings.retry}
          </Button>
        )}
        <Ways task={task} />
      </div>
    </section>
  );
}

function Choice({
  option,
  lastCost,
  checked,
  onChoose,
}: {
  option: RetryOption;
  lastCost: string | undefined;
  checked: boolean;
  onChoose: () => void;
}) {
  const fromFailure = option.from === 'failure';
  return (
    <label className="choice check">
      <input type="radio" name="retry-from" checked={checked} onChange={onChoose} />
      <span className="stack">
        <span className="strong">{retryWord(option.from)}</span>
        <span className="small soft">
          {fromFailure ? strings.keeps(option) : strings.again(option)}{' '}
          {strings.asks(option.opensGates)} {option.textChanged && strings.textChanged}
        </span>
        <span className="small">
          {strings.repeats(option, lastCost)} · {strings.more(usd(option.maximumCostUsd))}
        </span>
      </span>
    </label>
  );
}

/** What else helps, by what went wrong. */
function Ways({ task }: { task: Task }) {
  const account = useAccount();
  const quiet = buttonClass({ look: 'quiet' });
  return (
    <>
      {task.error?.code.startsWith('TOOL_') && (
        <Link className={quiet} to="/$account/servers" params={{ account }}>
          {strings.useful.tool}
        </Link>
      )}
      {task.assignedAgent && task.input.length <= MAX_LINK_TEXT && (
        <Link
          className={quiet}
          to="/$account/new"
          params={{ account }}
          search={{ agent: task.assignedAgent, text: task.input || task.name }}
        >
          {strings.useful.again}
        </Link>
      )}
    </>
  );
}
