import type { Schedule } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAccount } from '../shell/account';
import { ListScreen } from '../shell/ListScreen';
import { Badge } from '../ui/Badge';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { schedulesQuery } from './queries';
import { ScheduleDialog } from './ScheduleDialog';
import { strings } from './strings';

const { columns } = strings;

export function Schedules() {
  const { data, error } = useQuery(schedulesQuery);
  const [creating, setCreating] = useState(false);
  return (
    <ListScreen
      title={strings.schedules}
      total={data?.total}
      error={error}
      add={strings.create}
      addShort={strings.createShort}
      onAdd={() => setCreating(true)}
      none={strings.none}
      noneHint={strings.noneHint}
    >
      {data && data.total > 0 && <ScheduleTable schedules={data.schedules} />}
      {data && data.total > data.schedules.length && (
        <p className="tl-note small soft">{strings.truncated(data.schedules.length)}</p>
      )}
      {creating && <ScheduleDialog onClose={() => setCreating(false)} />}
    </ListScreen>
  );
}

function ScheduleTable({ schedules }: { schedules: Schedule[] }) {
  return (
    <table className="table table-schedules">
      <thead>
        <tr>
          <th scope="col">{columns.name}</th>
          <th scope="col">{columns.when}</th>
          <th scope="col">{columns.next}</th>
          <th scope="col">{columns.last}</th>
        </tr>
      </thead>
      <tbody>
        {schedules.map((schedule) => (
          <ScheduleRow key={schedule.id} schedule={schedule} />
        ))}
      </tbody>
    </table>
  );
}

function ScheduleRow({ schedule }: { schedule: Schedule }) {
  const account = useAccount();
  const agent = schedule.task.agent ?? schedule.task.assignedAgent;
  return (
    <tr>
      <td>
        <Link
          className="strong name"
          to="/$account/schedules/$id"
          params={{ account, id: schedule.id }}
        >
          <SafeText>{schedule.name}</SafeText>
        </Link>
        {agent && (
          <p className="small soft clip">
            <SafeText>{agent}</SafeText>
          </p>
        )}
      </td>
      <td>
        <When schedule={schedule} />
      </td>
      <td data-l={columns.next}>
        <Next schedule={schedule} />
      </td>
      <td className="soft" data-l={columns.last}>
        {schedule.lastDueAt ? <Ago at={schedule.lastDueAt} /> : strings.never}
        {schedule.lastOutcome && schedule.lastOutcome !== 'created' && (
          <p className="small">{strings.outcomes[schedule.lastOutcome]}</p>
        )}
      </td>
    </tr>
  );
}

export function When({ schedule }: { schedule: Schedule }) {
  const words = strings.presets[schedule.cron];
  return (
    <>
      <p>{words ?? <code>{schedule.cron}</code>}</p>
      <p className="small faint clip">{schedule.timeZone}</p>
    </>
  );
}

export function Next({ schedule }: { schedule: Schedule }) {
  if (schedule.paused) {
    return (
      <Badge
        tone={schedule.lastError ? 'bad' : 'line'}
        icon={schedule.lastError ? 'alert' : 'stop'}
      >
        {strings.paused}
      </Badge>
    );
  }
  if (!schedule.nextAt) return null;
  if (Date.parse(schedule.nextAt) < Date.now() - 60_000) return <>{strings.waits}</>;
  return <Ago at={schedule.nextAt} />;
}
