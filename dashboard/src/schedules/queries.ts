import { getSchedule, listSchedules } from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { ok } from '../api/client';
import { keys } from '../api/keys';

const PAGE = 100;

export const schedulesQuery = queryOptions({
  queryKey: keys.schedules,
  queryFn: () => ok(listSchedules({ query: { limit: PAGE }, throwOnError: true })),
});

export const scheduleQuery = (id: string) =>
  queryOptions({
    queryKey: keys.schedule(id),
    queryFn: () => ok(getSchedule({ path: { id }, throwOnError: true })),
  });
