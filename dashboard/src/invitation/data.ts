import { acceptInvitation, getInvitation } from '@rota/sdk';
import { queryOptions } from '@tanstack/react-query';
import { ok } from '../api/client';

export const receivedQuery = (token: string) =>
  queryOptions({
    queryKey: ['invitation', token],
    queryFn: async () =>
      (await ok(getInvitation({ path: { token }, throwOnError: true }))).invitation,
    // It is a secret, so it does not stay longer than the page.
    gcTime: 0,
  });

export const accept = async (token: string, key: string) => {
  const headers = { 'Idempotency-Key': key };
  return (await ok(acceptInvitation({ path: { token }, headers, throwOnError: true }))).account;
};
