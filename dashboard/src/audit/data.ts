/** What the audit trail reads. It stays as it is while it is read: nothing live changes it. */
import { infiniteQueryOptions, keepPreviousData } from '@tanstack/react-query';
import { api } from '../api/client';
import { type AuditFilter, toQuery } from './filter';

const PAGE = 50;

/** The entries, newest first, with the signed head. */
export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam }) =>
      api.audit.list({ ...toQuery(filter), limit: PAGE, offset: pageParam }).firstPage(),
    initialPageParam: 0,
    getNextPageParam: ({ entries, total }, _, offset) =>
      entries.length && offset + PAGE < total ? offset + PAGE : undefined,
    placeholderData: keepPreviousData,
  });

export const exportTrail = () => api.audit.export();
