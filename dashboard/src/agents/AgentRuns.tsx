import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { Empty } from '../ui/Empty';
import { Loading } from '../ui/Loading';
import { Money } from '../ui/Money';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { Ago } from '../ui/Time';
import { lastRunsQuery } from './queries';
import { strings } from './strings';

export function AgentRuns({ name }: { name: string }) {
  const account = useAccount();
  const { data, error } = useQuery(lastRunsQuery(name));
  const { runs: words } = strings;
  if (error && !data) return <ErrorNotice error={error} />;
  if (!data) return <Loading />;
  if (!data.tasks.length) {
    return (
      <div className="card">
        <Empty title={words.none}>
          <p>{words.noneHint}</p>
        </Empty>
      </div>
    );
  }
  return (
    <div className="stack-4">
      <div className="card">
        <table className="table table-runs">
          <thead>
            <tr>
              <th scope="col">{words.task}</th>
              <th scope="col">{words.status}</th>
              <th scope="col" className="end">
                {words.cost}
              </th>
              <th scope="col" className="end">
                {words.created}
              </th>
            </tr>
          </thead>
          <tbody>
            {data.tasks.map((task) => (
              <tr key={task.id}>
                <td>
                  <Link
                    className="strong name"
                    to="/$account/tasks/$id"
                    params={{ account, id: task.id }}
                  >
                    <SafeText>{task.name}</SafeText>
                  </Link>
                </td>
                <td>
                  <Status status={task.status} />
                </td>
                <td className="end" data-l={words.cost}>
                  <Money usd={task.usage.costUsd} fine />
                </td>
                <td className="end faint">
                  <Ago at={task.createdAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {data.total > data.tasks.length && (
        <p className="small">
          <Link className="link" to="/$account/tasks" params={{ account }} search={{ agent: name }}>
            {words.all}
          </Link>
        </p>
      )}
    </div>
  );
}
