import { useQuery } from '@tanstack/react-query';
import { offerQuery } from './queries';

/** Whether anything can be bought. Undefined until it is known; true if the service does not say. */
export function useTakesPayments(enabled = true): boolean | undefined {
  const { data, isPending } = useQuery({ ...offerQuery, enabled });
  return isPending ? undefined : data?.takesPayments !== false;
}
