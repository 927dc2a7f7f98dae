import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useAccount } from '../shell/account';
import { ConnectionMark, TopBar } from '../shell/TopBar';
import { buttonClass } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { Icon } from '../ui/Icon';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { BulkBar } from './BulkBar';
import { type TaskFilter, taskPageQuery } from './queries';
import { strings } from './strings';
import { TaskFilters } from './TaskFilters';
import { TaskList } from './TaskList';
import { useSelection } from './useSelection';
import { MAX_ROWS } from './windowing';

function NoTasks({ filtered }: { filtered: boolean }) {
  const account = useAccount();
  return (
    <Empty title={filtered ? strings.noMatch : strings.none}>
      <p>{filtered ? strings.noMatchHint : strings.noneHint}</p>
      {filtered ? (
        <Link className={buttonClass({})} to="/$account/tasks" params={{ account }} search={{}}>
          {strings.clearFilters}
        </Link>
      ) : (
        <Link className={buttonClass({ look: 'primary' })} to="/$account/new" params={{ account }}>
          {strings.newTask}
        </Link>
      )}
    </Empty>
  );
}

export function Tasks() {
  const account = useAccount();
  const filter = useSearch({ from: '/$account/tasks' });
  const first = useQuery({ ...taskPageQuery(filter, 0), placeholderData: keepPreviousData });
  // Until the first page of new filters is there, the list of the old ones stays.
  const [shown, setShown] = useState<TaskFilter>(filter);
  if (shown !== filter && first.data && !first.isPlaceholderData) setShown(filter);
  const selection = useSelection();
  const total = first.data?.total ?? 0;
  const filtered = Boolean(filter.status || filter.agent || filter.q);
  return (
    <main className="main tasks" id="main">
      <TopBar title={strings.tasks}>
        {first.data && <span className="small faint num">{strings.found(total)}</span>}
        <span className="row push">
          <ConnectionMark />
          <Link
            className={`${buttonClass({ size: 's' })} only-phone`}
            to="/$account/schedules"
            params={{ account }}
          >
            <Icon name="cal" small />
            {strings.schedules}
          </Link>
          <Link
            className={`${buttonClass({ size: 's' })} not-phone`}
            to="/$account/new"
            params={{ account }}
          >
            <Icon name="plus" small />
            {strings.newTask}
          </Link>
        </span>
      </TopBar>
      <TaskFilters filter={filter} />
      {first.error && (
        <div className="page">
          <ErrorNotice error={first.error} onRetry={first.refetch} />
        </div>
      )}
      {first.isPending && <Loading />}
      {first.data && total === 0 && !first.isPlaceholderData && <NoTasks filtered={filtered} />}
      {total > 0 && (
        <TaskList
          filter={shown}
          total={Math.min(total, MAX_ROWS)}
          stale={first.isPlaceholderData}
          selection={selection}
        />
      )}
      {total > MAX_ROWS && <p className="tl-note small soft">{strings.tooMany(MAX_ROWS)}</p>}
      {selection.tasks.size > 0 && <BulkBar selection={selection} />}
    </main>
  );
}
