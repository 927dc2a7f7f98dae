import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { Empty } from '../ui/Empty';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { RunTable } from '../ui/RunTable';
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
        <RunTable tasks={data.tasks} words={words} />
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
