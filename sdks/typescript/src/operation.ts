/**
 * One operation of the API, as `POST /api/tasks`. `POST*` says that the service accepts an
 * Idempotency-Key. It is a text because it is in every bundle. `Response` is the type of its response
 * and exists only for the compiler.
 */
export type Operation<Response> = `${string} /${string}` & { readonly response?: Response };

export function partsOf(operation: string): { method: string; path: string; keyed: boolean } {
  const [verb = '', path = ''] = operation.split(' ');
  return { method: verb.replace('*', ''), path, keyed: verb.endsWith('*') };
}

/** The same operation without an Idempotency-Key, and with another response. */
export const unkeyed = <Response>(operation: Operation<unknown>): Operation<Response> =>
  operation.replace('*', '') as Operation<Response>;
