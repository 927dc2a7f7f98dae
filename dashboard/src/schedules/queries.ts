import { queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';

const PAGE = 100;

export const schedulesQuery = queryOptions({
  queryKey: keys.schedules,
  queryFn: () => api.schedules.list({ limit: PAGE }).firstPage(),
});

export const scheduleQuery = (id: string) =>
  queryOptions({
    queryKey: keys.schedule(id),
    queryFn: () => api.schedules.get(id),
  });
