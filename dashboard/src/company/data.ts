import { createCompany } from '@rota/sdk';
import { ok } from '../api/client';

/** Creates a company that the caller owns. */
export const create = async (name: string, key: string) => {
  const headers = { 'Idempotency-Key': key };
  return (await ok(createCompany({ body: { name }, headers, throwOnError: true }))).account;
};
