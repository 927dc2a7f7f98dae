import type { AuditEntry, AuditHead, MeResponse } from '@rota/sdk';
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { meQuery } from '../api/queries';
import { SectionHead } from '../settings/SectionHead';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { download, today } from '../ui/download';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { AuditFilters } from './AuditFilters';
import { auditQuery, exportTrail } from './data';
import { EntryDialog } from './EntryDialog';
import { EntryTable } from './EntryTable';
import type { AuditFilter } from './filter';
import { strings } from './strings';
import { usePeople } from './usePeople';
import { once } from './words';
import './audit.css';

const route = getRouteApi('/$account/settings/$section');

/** Who did what. Members of a company who are not owners or admins do not have this page. */
export function AuditTrail() {
  const { data: me, error } = useQuery(meQuery);
  if (me) return <Trail me={me} />;
  return error ? <ErrorNotice error={error} /> : <Loading />;
}

function Trail({ me }: { me: MeResponse }) {
  const filter: AuditFilter = route.useSearch();
  const navigate = route.useNavigate();
  const people = usePeople(me);
  const found = useInfiniteQuery(auditQuery(filter));
  const [opened, setOpened] = useState<AuditEntry | null>(null);
  const save = useMutation({
    mutationFn: exportTrail,
    onSuccess: (lines) => {
      download(`audit-${me.account.id}-${today()}.ndjson`, 'application/x-ndjson', lines);
      toast(strings.exported);
    },
  });
  const show = (search: AuditFilter) => navigate({ search, replace: true, resetScroll: false });
  const isFiltered = Object.values(filter).some(Boolean);
  const entries = once(found.data?.pages.flatMap((page) => page.entries) ?? []);
  const error = save.error ?? found.error;
  return (
    <>
      <SectionHead title={strings.name} hint={strings.hint}>
        <Button busy={save.isPending} onClick={() => save.mutate()}>
          {strings.export}
        </Button>
      </SectionHead>
      <AuditFilters
        filter={filter}
        people={people}
        onChange={(change) => show({ ...filter, ...change })}
      />
      {error && <ErrorNotice error={error} />}
      {!found.data && !found.error && <Loading />}
      {found.data && (
        <section className="card" aria-labelledby="audit">
          <div className="card-head">
            <h3 id="audit">{strings.entries}</h3>
            {isFiltered && (
              <Button size="s" look="quiet" className="push" onClick={() => show({})}>
                {strings.clear}
              </Button>
            )}
          </div>
          {entries.length === 0 ? (
            <p className="card-pad soft">{isFiltered ? strings.noMatch : strings.none}</p>
          ) : (
            <>
              <EntryTable
                entries={entries}
                busy={found.isPlaceholderData}
                nameOf={(id) => people.find((person) => person.id === id)?.name ?? id}
                onOpen={setOpened}
              />
              <div className="card-foot small soft row">
                <span>{strings.shownOf(entries.length, found.data.pages.at(-1)?.total ?? 0)}</span>
                {found.hasNextPage && (
                  <Button
                    size="s"
                    className="push"
                    busy={found.isFetchingNextPage}
                    onClick={() => found.fetchNextPage()}
                  >
                    {strings.more}
                  </Button>
                )}
              </div>
            </>
          )}
        </section>
      )}
      {found.data?.pages[0] && <Head head={found.data.pages[0].head} />}
      {opened && (
        <EntryDialog
          entry={opened}
          onClose={() => setOpened(null)}
          onShow={(only) => {
            setOpened(null);
            show(only);
          }}
        />
      )}
    </>
  );
}

/** What an auditor keeps. */
function Head({ head }: { head: AuditHead }) {
  return (
    <section className="card" aria-labelledby="audit-head">
      <div className="card-head">
        <h3 id="audit-head">{strings.head}</h3>
        <span className="small soft num">{strings.newest(head.sequence)}</span>
        <span className="push">
          <CopyButton text={head.jws} label={strings.copyHead} />
        </span>
      </div>
      <p className="card-pad soft">{strings.headHint}</p>
    </section>
  );
}
