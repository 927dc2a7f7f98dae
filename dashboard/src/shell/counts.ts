import { useQuery } from '@tanstack/react-query';
import { approvalsQuery } from '../api/queries';
import { isSnoozed } from '../inbox/groups';
import { useCanApprove } from '../review/people';
import { useNow } from '../ui/Time';

/** How many reviews wait for the caller now. Nothing waits for those who cannot approve. */
export function useWaitingCount(): number {
  const approvals = useQuery(approvalsQuery).data?.approvals ?? [];
  const now = useNow();
  return useCanApprove() ? approvals.filter((each) => !isSnoozed(each, now)).length : 0;
}
