import { errors, type Session } from '@rota/sdk';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { useSignOut } from '../signin/useSignOut';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { plural } from '../ui/format';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { toast } from '../ui/toast';
import { ConfirmDialog } from './ConfirmDialog';
import { SectionHead } from './SectionHead';
import { strings } from './strings';

const words = strings.sessions;

const sessionsQuery = queryOptions({
  queryKey: keys.sessions,
  queryFn: () => api.sessions.list().firstPage(),
});

const nameOf = ({ device }: Session) => device ?? words.unknownDevice;

/** Signs out all of them. One that has already ended is done, and another error stops none. */
async function endAll(sessions: Session[]): Promise<void> {
  const failures: unknown[] = [];
  for (const session of sessions) {
    try {
      await api.sessions.delete(session);
    } catch (error) {
      if (!(error instanceof errors.NotFoundError)) failures.push(error);
    }
  }
  if (failures.length) throw failures[0];
}

export function Sessions() {
  const cache = useQueryClient();
  const { data, error } = useQuery(sessionsQuery);
  // The sessions that a person is asked about.
  const [ending, setEnding] = useState<Session[]>([]);
  const end = useMutation({
    mutationFn: endAll,
    onSuccess: (_, sessions) => {
      setEnding([]);
      toast(sessions.length > 1 ? words.othersEnded : words.ended);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.sessions }),
  });
  const ask = (sessions: Session[]) => {
    end.reset();
    setEnding(sessions);
  };
  const others = data?.sessions.filter((session) => !session.current) ?? [];
  const [first] = ending;
  return (
    <>
      <SectionHead title={words.name} hint={words.hint}>
        {others.length > 0 && (
          <Button look="danger" onClick={() => ask(others)}>
            {words.endOthers}
          </Button>
        )}
      </SectionHead>
      {error && <ErrorNotice error={error} />}
      {!data && !error && <Loading />}
      {data && <SessionTable sessions={data.sessions} onEnd={(session) => ask([session])} />}
      {first && (
        <ConfirmDialog
          title={
            ending.length > 1
              ? words.endOthersTitle(plural(ending.length, 'session'))
              : words.endTitle
          }
          action={ending.length > 1 ? words.endOthers : words.signOut}
          busy={end.isPending}
          error={end.error}
          onConfirm={() => end.mutate(ending)}
          onClose={() => setEnding([])}
        >
          <p>
            {ending.length > 1 ? (
              words.endOthersEffect
            ) : (
              <SafeText>{words.endEffect(nameOf(first))}</SafeText>
            )}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

function SessionTable({
  sessions,
  onEnd,
}: {
  sessions: Session[];
  onEnd: (session: Session) => void;
}) {
  const signOut = useSignOut();
  return (
    <section className="card" aria-labelledby="sessions">
      <div className="card-head">
        <h3 id="sessions">{words.active}</h3>
        <Badge>{sessions.length}</Badge>
      </div>
      <table className="table table-keys table-sessions" aria-labelledby="sessions">
        <thead>
          <tr>
            <th scope="col">{words.device}</th>
            <th scope="col">{words.address}</th>
            <th scope="col">{words.signedIn}</th>
            <th scope="col">{words.lastSeen}</th>
            <th scope="col">
              <span className="sr">{strings.action}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => (
            <tr key={session.id}>
              <td>
                <p className="row row-wrap">
                  <span className="strong">
                    <SafeText>{nameOf(session)}</SafeText>
                  </span>
                  {session.current && <Badge tone="accent">{words.thisDevice}</Badge>}
                </p>
              </td>
              <td className="soft" data-l={words.address}>
                {session.address ? <code>{session.address}</code> : strings.unknown}
              </td>
              <td className="soft" data-l={words.signedIn}>
                <Ago at={session.createdAt} />
              </td>
              <td className="soft" data-l={words.lastSeen}>
                <Ago at={session.lastSeenAt} />
              </td>
              <td className="act end">
                {session.current ? (
                  <Button size="s" onClick={signOut}>
                    {words.signOut}
                  </Button>
                ) : (
                  <Button size="s" look="danger" onClick={() => onEnd(session)}>
                    {words.signOut}
                    <span className="sr"> {nameOf(session)}</span>
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
