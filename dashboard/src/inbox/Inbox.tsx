import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { useCanApprove } from '../review/people';
import { useAccount } from '../shell/account';
import { Button, buttonClass } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { Kbd } from '../ui/Kbd';
import { Loading } from '../ui/Loading';
import { ErrorNotice, Notice } from '../ui/Notice';
import { useShortcuts } from '../ui/shortcuts';
import { useWide } from '../ui/wide';
import { BulkBar } from './BulkBar';
import { ListBar } from './ListBar';
import { strings } from './strings';
import { type InboxState, useInbox } from './useInbox';
import { WaitList } from './WaitList';
import { isSkipped } from './welcomed';

// A phone shows the list alone.
const ReviewPane = lazy(() =>
  import('../review/ReviewPane').then(({ ReviewPane }) => ({ default: ReviewPane })),
);
const BulkDialog = lazy(() =>
  import('./BulkDialog').then(({ BulkDialog }) => ({ default: BulkDialog })),
);
const Welcome = lazy(() => import('./Welcome').then(({ Welcome }) => ({ default: Welcome })));

/** An account without any task gets the first steps instead of an empty list. */
function useIsNew(empty: boolean): boolean {
  const account = useAccount();
  const skipped = isSkipped(account, 'all');
  const total = useQuery({
    queryKey: [...keys.tasks, 'any'],
    queryFn: () => api.tasks.list({ limit: 1 }).firstPage(),
    enabled: empty && !skipped,
  }).data?.total;
  return empty && !skipped && total === 0;
}

function LaterLine({ inbox }: { inbox: InboxState }) {
  const account = useAccount();
  const { later } = inbox.search;
  if (!later && !inbox.later) return null;
  return (
    <p className="bundle">
      <span>{later ? strings.laterHint : strings.later(inbox.later)}</span>
      <Link
        className={`${buttonClass({ size: 's' })} push`}
        to="/$account"
        params={{ account }}
        search={later ? {} : { later: true }}
      >
        {later ? strings.toInbox : strings.showLater}
      </Link>
    </p>
  );
}

function Nothing({ inbox }: { inbox: InboxState }) {
  const account = useAccount();
  const { agent, later } = inbox.search;
  return (
    <Empty title={agent ? strings.nothingForAgent : strings.nothing}>
      {!agent && <p>{strings.nothingHint}</p>}
      {agent ? (
        <Link className={buttonClass({})} to="/$account" params={{ account }} search={{ later }}>
          {strings.showAll}
        </Link>
      ) : (
        <Link className={buttonClass({ look: 'primary' })} to="/$account/new" params={{ account }}>
          {strings.newTask}
        </Link>
      )}
    </Empty>
  );
}

function KeyLine() {
  const { keys } = strings;
  return (
    <p className="pane-foot">
      <span>
        <Kbd>J</Kbd>
        <Kbd>K</Kbd> {keys.move}
      </span>
      <span>
        <Kbd>X</Kbd> {keys.select}
      </span>
      <span>
        <Kbd>A</Kbd> {keys.approve}
      </span>
      <span>
        <Kbd>?</Kbd> {keys.all}
      </span>
    </p>
  );
}

/** The card that has the focus. In a narrow window, no review is selected beside the list. */
const focusedCard = (): string | undefined =>
  document.activeElement?.closest<HTMLElement>('[data-task]')?.dataset.task;

function focusCard(id: string): void {
  const card = document.querySelector<HTMLElement>(`[data-task="${CSS.escape(id)}"]`);
  card?.querySelector<HTMLElement>('.what a')?.focus({ preventScroll: true });
  card?.scrollIntoView({ block: 'nearest' });
}

/** What waits for me, and what happens if I do nothing? */
export function Inbox() {
  const inbox = useInbox();
  const wide = useWide();
  const canDecide = useCanApprove();
  const [checked, setChecked] = useState<ReadonlySet<string>>(new Set());
  const [deciding, setDeciding] = useState<'approve' | 'reject' | null>(null);
  const { query, ordered, select, search } = inbox;
  const selected = search.task;
  const first = ordered[0]?.task.id;
  // The first one is named in the URL at once: what stands beside the list changes only by hand.
  useEffect(() => {
    if (wide && !selected && first) select(first);
  });
  const isNew = useIsNew(query.isSuccess && inbox.all.length === 0);
  const marked = canDecide ? ordered.filter((each) => checked.has(each.task.id)) : [];
  const check = (ids: string[], yes: boolean) =>
    setChecked((before) => {
      const next = new Set(before);
      for (const id of ids) yes ? next.add(id) : next.delete(id);
      return next;
    });
  const clear = () => setChecked(new Set());
  const move = (by: number) => {
    const next = inbox.step(wide ? selected : focusedCard(), by);
    if (!next) return;
    if (wide) select(next);
    focusCard(next);
  };
  useShortcuts({
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const id = wide ? selected : focusedCard();
      if (id && canDecide) check([id], !checked.has(id));
    },
    ...(marked.length
      ? {
          a: () => setDeciding('approve'),
          r: () => setDeciding('reject'),
          Escape: clear,
        }
      : {}),
  });
  if (isNew) {
    return (
      <Suspense fallback={<Loading />}>
        <Welcome />
      </Suspense>
    );
  }
  const goOn = () => select(inbox.after(selected));
  return (
    <main className="main split" id="main">
      <section className="pane pane-list" aria-label={strings.title}>
        <ListBar inbox={inbox} />
        {query.error && (
          <div className="card-pad-s">
            <ErrorNotice error={query.error} onRetry={query.refetch} />
          </div>
        )}
        {query.isPending && <Loading />}
        {!canDecide && !wide && ordered.length > 0 && (
          <div className="card-pad-s">
            <Notice tone="wait">{strings.approversOnly}</Notice>
          </div>
        )}
        <WaitList
          inbox={inbox}
          selected={wide ? selected : undefined}
          checked={checked}
          onCheck={check}
          onTogether={(ids) => setChecked(new Set(ids))}
        />
        <LaterLine inbox={inbox} />
        {query.isSuccess && !ordered.length && !wide && <Nothing inbox={inbox} />}
        {marked.length > 0 && <BulkBar selected={marked} onDecide={setDeciding} onClear={clear} />}
        <KeyLine />
      </section>
      {wide && (
        // Another review starts at its top.
        <section key={selected} className="pane pane-detail" aria-label={strings.selected}>
          {selected ? (
            <Suspense fallback={<Loading />}>
              <ReviewPane
                key={selected}
                id={selected}
                quiet={marked.length > 0}
                onDone={goOn}
                nextAction={
                  inbox.after(selected) && (
                    <Button look="primary" onClick={goOn}>
                      {strings.next}
                    </Button>
                  )
                }
              />
            </Suspense>
          ) : (
            query.isSuccess && !ordered.length && <Nothing inbox={inbox} />
          )}
        </section>
      )}
      {deciding && (
        <Suspense>
          <BulkDialog
            how={deciding}
            selected={marked}
            onClose={(decided) => {
              setDeciding(null);
              if (decided) clear();
            }}
          />
        </Suspense>
      )}
    </main>
  );
}
