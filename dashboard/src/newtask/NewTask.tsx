import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useAccount } from '../shell/account';
import { TopBar } from '../shell/TopBar';
import { buttonClass } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Kbd } from '../ui/Kbd';
import { useShortcuts } from '../ui/shortcuts';
import { Candidates } from './Candidates';
import { lengthOf, MAX_TEXT } from './draft';
import { Options } from './Options';
import { Quote } from './Quote';
import { agentDetailQuery, quoteQuery } from './queries';
import { StartBar, StartButton, StartError } from './Start';
import { strings } from './strings';
import { useCandidates } from './useCandidates';
import { quotedOf, requestOf, useDraft, useStart } from './useDraft';
import { WorkField } from './WorkField';

function Close() {
  const account = useAccount();
  return (
    <Link
      className={`${buttonClass({ look: 'quiet', size: 's' })} push`}
      to="/$account"
      params={{ account }}
    >
      <span className="only-phone">
        <Icon name="x" />
      </span>
      {strings.close}
      <Kbd>Esc</Kbd>
    </Link>
  );
}

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
    agent && !agent.locked && draft.text.trim() && lengthOf(draft.text) <= MAX_TEXT,
  );
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (agent && isReady && !start.isPending) start.mutate(requestOf(draft, agent.name));
  };
  const latest = useRef(submit);
  useEffect(() => {
    latest.current = submit;
  });
  useEffect(() => {
    const send = (event: KeyboardEvent) => {
      if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      latest.current();
    };
    addEventListener('keydown', send);
    return () => removeEventListener('keydown', send);
  }, []);
  const editName = () => {
    setMore(true);
    requestAnimationFrame(() =>
      form.current?.querySelector<HTMLInputElement>('input[name="name"]')?.focus(),
    );
  };

  return (
    <main className="main" id="main">
      <TopBar title={strings.title}>
        <Close />
      </TopBar>
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
