import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useRef, useState } from 'react';
import { useAccount } from '../shell/account';
import { useShortcuts } from '../ui/shortcuts';
import { Candidates } from './Candidates';
import { isBudget, lengthOf, MAX_TEXT } from './draft';
import { NewTaskBar } from './NewTaskBar';
import { isAboutOptions, Options } from './Options';
import { Quote } from './Quote';
import { agentDetailQuery, quoteQuery } from './queries';
import { StartBar, StartButton, StartError } from './Start';
import { useCandidates } from './useCandidates';
import { quotedOf, requestOf, useDraft, useStart } from './useDraft';
import { useSubmitKey } from './useSubmitKey';
import { WorkField } from './WorkField';

export function NewTask() {
  const account = useAccount();
  const search = useSearch({ from: '/$account/new' });
  const navigate = useNavigate({ from: '/$account/new' });
  const [draft, change] = useDraft(search.text ?? '');
  const candidates = useCandidates(draft.text, search.agent);
  const start = useStart();
  const [more, setMore] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const chosen = candidates.chosen;
  const detail = useQuery({ ...agentDetailQuery(chosen ?? ''), enabled: Boolean(chosen) });
  const agent = detail.data?.agent;
  const asked = useQuery({
    ...quoteQuery(quotedOf(draft, agent?.name ?? '')),
    enabled: Boolean(agent && !agent.locked),
  });
  const quote = asked.data?.quote;
  const close = () => navigate({ to: '/$account', params: { account } });
  useShortcuts({ Escape: close });

  const isReady = Boolean(
    agent &&
      candidates.settled &&
      !agent.locked &&
      draft.text.trim() &&
      lengthOf(draft.text) <= MAX_TEXT &&
      isBudget(draft.budget),
  );
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (!agent || !isReady || start.isPending) return;
    start.mutate(requestOf(draft, agent.name), {
      onError: (error) => setMore((open) => open || isAboutOptions(error)),
    });
  };
  useSubmitKey(submit);
  const editName = () => {
    setMore(true);
    requestAnimationFrame(() =>
      form.current?.querySelector<HTMLInputElement>('input[name="name"]')?.focus(),
    );
  };

  return (
    <main className="main" id="main">
      <NewTaskBar agent={search.agent} />
      <form ref={form} className="handover" onSubmit={submit} noValidate>
        <div className="stack-6">
          <WorkField draft={draft} change={change} onEditName={editName} error={start.error} />
          <Candidates
            candidates={candidates}
            onChoose={(name) =>
              navigate({ search: { ...search, agent: name }, replace: true, resetScroll: false })
            }
          />
          <Options
            draft={draft}
            change={change}
            open={more}
            onToggle={setMore}
            error={start.error}
          />
        </div>
        <Quote agent={agent} quote={quote} error={detail.error ?? asked.error}>
          <StartError error={start.error} />
          <StartButton disabled={!isReady} busy={start.isPending} waits={draft.waitForGo} />
        </Quote>
        <StartBar
          agent={agent}
          quote={quote}
          disabled={!isReady}
          busy={start.isPending}
          waits={draft.waitForGo}
        />
      </form>
    </main>
  );
}
