import type { Schedule, Task } from '@rota/sdk';
import { Button } from '../ui/Button';
import { Facts } from '../ui/Facts';
import { Notice } from '../ui/Notice';
import { RunTable } from '../ui/RunTable';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { inZone } from './form';
import { Next, When } from './Schedules';
import { strings } from './strings';

const { facts: words } = strings;

export function ScheduleHead({ schedule, onResume }: { schedule: Schedule; onResume: () => void }) {
  const { task, lastError } = schedule;
  const agent = task.agent ?? task.assignedAgent;
  return (
    <>
      <div className="stack">
        <h1 className="review-title review-title-l">
          <SafeText>{schedule.name}</SafeText>
        </h1>
        {task.input && (
          <p className="soft four">
            <SafeText>{task.input}</SafeText>
          </p>
        )}
      </div>
      <Facts
        className="facts-schedule"
        facts={[
          { name: words.when, value: <When schedule={schedule} /> },
          { name: strings.columns.next, value: <Next schedule={schedule} /> },
          { name: words.agent, value: <SafeText>{agent ?? strings.noAgent}</SafeText> },
          { name: words.overlap, value: strings.overlaps[schedule.overlap] },
        ]}
      />
      {lastError && (
        <Notice
          tone="bad"
          title={schedule.paused ? strings.pausedProblem : strings.problem}
          actions={schedule.paused && <Button onClick={onResume}>{strings.resume}</Button>}
        >
          <p>
            <SafeText>{lastError.message}</SafeText>
          </p>
        </Notice>
      )}
    </>
  );
}

export function NextTimes({ schedule, times }: { schedule: Schedule; times: string[] }) {
  return (
    <section className="card" aria-labelledby="next-times">
      <div className="card-head">
        <h2 id="next-times">{strings.nextTimes}</h2>
        <span className="small faint clip">{strings.inZone(schedule.timeZone)}</span>
      </div>
      {times.length === 0 && <p className="card-pad soft">{strings.noTimes}</p>}
      <ol className="next-times">
        {times.map((time) => (
          <li key={time} className="row">
            <time dateTime={time}>{inZone(time, schedule.timeZone)}</time>
            <span className="push faint">
              <Ago at={time} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

export function LastTasks({ tasks }: { tasks: Task[] }) {
  return (
    <section className="card" aria-labelledby="last-tasks">
      <div className="card-head">
        <h2 id="last-tasks">{strings.lastTasks}</h2>
      </div>
      {tasks.length === 0 && <p className="card-pad soft">{strings.noTasks}</p>}
      {tasks.length > 0 && <RunTable tasks={tasks} words={strings.tasks} />}
    </section>
  );
}
