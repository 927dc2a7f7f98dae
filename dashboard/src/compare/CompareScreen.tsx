import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { CrumbBar } from '../shell/TopBar';
import { taskQuery } from '../tasks/queries';
import { SafeText } from '../ui/SafeText';
import { RunColumn } from './RunColumn';
import { strings } from './strings';
import './compare.css';

/** A task and its fork, side by side. */
export function CompareScreen() {
  const { original, fork } = useParams({ from: '/$account/compare/$original/$fork' });
  const task = useQuery(taskQuery(fork)).data?.task;
  const origin = task?.forkedFrom?.taskId === original ? task.forkedFrom : null;
  return (
    <main className="main" id="main">
      <CrumbBar to="/$account/tasks" parent={strings.tasks} here={strings.title} />
      <div className="page stack-6">
        <div className="stack">
          <h1 className="review-title review-title-l">
            <SafeText>{task?.name ?? strings.title}</SafeText>
          </h1>
          {origin && <p className="small soft">{strings.counts(origin.step)}</p>}
        </div>
        <div className="compared">
          <RunColumn id={original} name={strings.original} origin={origin} />
          <RunColumn id={fork} name={strings.fork} />
        </div>
      </div>
    </main>
  );
}
