import { api } from '../api/client';

/** Creates a company that the caller owns. */
export const create = (name: string, key: string) =>
  api.companies.create({ name }, { idempotencyKey: key });
