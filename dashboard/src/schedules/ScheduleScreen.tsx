import type { Schedule } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { CrumbBar } from '../shell/TopBar';
import { Button, buttonClass } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { Menu } from '../ui/Menu';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { DeleteDialog } from './DeleteDialog';
import { scheduleQuery } from './queries';
import { LastTasks, NextTimes, ScheduleHead } from './ScheduleDetails';
import { ScheduleDialog } from './ScheduleDialog';
import { strings } from './strings';

const route = getRouteApi('/$account/schedules/$id');

function useRun(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (key: string) => api.schedules.run(id, { idempotencyKey: key }),
    onSuccess: () => {
      toast(strings.ran);
      return cache.invalidateQueries({ queryKey: keys.schedule(id) });
    },
  });
}

function usePause(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (paused: boolean) => api.schedules.update(id, { paused }),
    onSuccess: (schedule) => {
      toast(schedule.paused ? strings.pausedToast : strings.resumedToast);
      return cache.invalidateQueries({ queryKey: keys.schedules });
    },
  });
}

export function ScheduleScreen() {
  const { account, id } = route.useParams();
  const { data, error } = useQuery(scheduleQuery(id));
  const [dialog, setDialog] = useState<'edit' | 'delete' | null>(null);
  const run = useRun(id);
  const pause = usePause(id);
  const schedule = data?.schedule;
  return (
    <main className="main" id="main">
      <CrumbBar
        to="/$account/schedules"
        parent={strings.schedules}
        here={<SafeText>{schedule?.name ?? id}</SafeText>}
      >
        {schedule && (
          <>
            <Button icon="go" busy={run.isPending} onClick={() => run.mutate(newIdempotencyKey())}>
              <span className="not-phone">{strings.runNow}</span>
              <span className="only-phone">{strings.runShort}</span>
            </Button>
            <Actions schedule={schedule} onPause={pause.mutate} onDialog={setDialog} />
          </>
        )}
      </CrumbBar>
      <div className="page page-narrow stack-6">
        {error && !data && (
          <ErrorNotice
            error={error}
            actions={
              <Link className={buttonClass({})} to="/$account/schedules" params={{ account }}>
                {strings.allSchedules}
              </Link>
            }
          />
        )}
        {run.error && <ErrorNotice error={run.error} />}
        {pause.error && <ErrorNotice error={pause.error} />}
        {!schedule && !error && <Loading />}
        {data && (
          <>
            <ScheduleHead schedule={data.schedule} onResume={() => pause.mutate(false)} />
            <NextTimes schedule={data.schedule} times={data.nextTimes} />
            <LastTasks tasks={data.lastTasks} />
          </>
        )}
      </div>
      {schedule && dialog === 'edit' && (
        <ScheduleDialog schedule={schedule} onClose={() => setDialog(null)} />
      )}
      {schedule && dialog === 'delete' && (
        <DeleteDialog schedule={schedule} onClose={() => setDialog(null)} />
      )}
    </main>
  );
}

function Actions({
  schedule,
  onPause,
  onDialog,
}: {
  schedule: Schedule;
  onPause: (paused: boolean) => void;
  onDialog: (dialog: 'edit' | 'delete') => void;
}) {
  return (
    <Menu
      label={strings.more}
      look="quiet"
      actions={[
        {
          label: schedule.paused ? strings.resume : strings.pause,
          icon: schedule.paused ? 'go' : 'stop',
          onSelect: () => onPause(!schedule.paused),
        },
        { label: strings.edit, icon: 'pencil', onSelect: () => onDialog('edit') },
        { label: strings.remove, icon: 'trash', onSelect: () => onDialog('delete') },
      ]}
    />
  );
}
