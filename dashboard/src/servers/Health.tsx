import type { PastCheck, ServerStatus } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { duration, exact } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { checksQuery } from './queries';
import { ServerState } from './ServerState';
import { statusWords, strings } from './strings';
import { summary } from './summary';

const { health: words } = strings;
const IN_TABLE = 20;

export function Health({ id }: { id: string }) {
  const { data, error } = useQuery(checksQuery(id));
  if (error && !data) return <ErrorNotice error={error} />;
  if (!data) return null;
  const { checks } = data;
  return (
    <section className="card" aria-labelledby="health">
      <div className="card-head card-head-l">
        <h2 id="health">{words.title}</h2>
        {checks.length > 0 && <span className="small soft push">{summary(checks)}</span>}
      </div>
      {checks.length === 0 ? (
        <p className="card-pad-s small soft">{words.none}</p>
      ) : (
        <>
          <div className="card-pad-s stack">
            <Strip checks={checks} />
            <Legend checks={checks} />
          </div>
          <details className="fold-out">
            <summary className="small">{words.table}</summary>
            <CheckTable checks={checks.slice(0, IN_TABLE)} />
          </details>
        </>
      )}
    </section>
  );
}

/** One bar for each check, the newest at the right. The card's head says the same in words. */
function Strip({ checks }: { checks: PastCheck[] }) {
  return (
    <div className="strip" role="img" aria-label={summary(checks)}>
      {checks.map((check, at) => (
        <Bar
          // biome-ignore lint/suspicious/noArrayIndexKey: two checks can have the same time.
          key={`${check.checkedAt} ${at}`}
          status={check.status}
          title={`${statusWords[check.status]}, ${exact(check.checkedAt)}`}
        />
      ))}
    </div>
  );
}

/** Full: connected. Half: changed. Hollow: no response. Hollow with a line: refused. */
function Bar({ status, title }: { status: ServerStatus; title?: string }) {
  return <span className={`strip-bar strip-${status.toLowerCase()}`} title={title} />;
}

function Legend({ checks }: { checks: PastCheck[] }) {
  const present = [...new Set(checks.map((check) => check.status))];
  return (
    <p className="row row-wrap tiny soft strip-legend" aria-hidden="true">
      {present.map((status) => (
        <span key={status} className="row">
          <Bar status={status} />
          {statusWords[status]}
        </span>
      ))}
      <span className="push faint">{words.newest} →</span>
    </p>
  );
}

function CheckTable({ checks }: { checks: PastCheck[] }) {
  return (
    <table className="table table-checks">
      <thead>
        <tr>
          <th scope="col">{words.when}</th>
          <th scope="col">{words.status}</th>
          <th scope="col" className="end">
            {words.latency}
          </th>
          <th scope="col">{words.error}</th>
        </tr>
      </thead>
      <tbody>
        {checks.map((check, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two checks can have the same time.
          <tr key={`${check.checkedAt} ${at}`}>
            <td className="soft">
              <Ago at={check.checkedAt} />
            </td>
            <td>
              <ServerState status={check.status} />
            </td>
            <td className="end">{check.latencyMs === null ? '' : duration(check.latencyMs)}</td>
            <td className="soft">{check.error && <SafeText>{check.error}</SafeText>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
