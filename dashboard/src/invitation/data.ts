import { queryOptions } from '@tanstack/react-query';
import { api } from '../api/client';

export const receivedQuery = (token: string) =>
  queryOptions({
    queryKey: ['invitation', token],
    queryFn: () => api.companies.getInvitation(token),
    // It is a secret, so it does not stay longer than the page.
    gcTime: 0,
  });

export const accept = (token: string, key: string) =>
  api.companies.acceptInvitation(token, { idempotencyKey: key });
