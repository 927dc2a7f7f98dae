import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { approvalsQuery } from '../api/queries';
import { useNow } from '../ui/Time';
import { groupsOf, isSnoozed } from './groups';

/** External tasks have no agent. In the URL they have this name. */
export const EXTERNAL = '-';

/** What waits, as the URL asks for it. */
export function useInbox() {
  const search = useSearch({ from: '/$account/' });
  const navigate = useNavigate({ from: '/$account' });
  const query = useQuery(approvalsQuery);
  const now = useNow();
  const all = query.data?.approvals ?? [];
  const inView = all.filter((each) => isSnoozed(each, now) === !!search.later);
  const agents = [...new Set(inView.map((each) => each.task.assignedAgent ?? EXTERNAL))];
  const shown = inView.filter(
    (each) => !search.agent || (each.task.assignedAgent ?? EXTERNAL) === search.agent,
  );
  const groups = groupsOf(shown);
  const ordered = groups.flatMap((group) => group.approvals);
  const ids = ordered.map((each) => each.task.id);
  const select = (task: string | undefined) =>
    navigate({ search: (before) => ({ ...before, task }), replace: true, resetScroll: false });
  return {
    query,
    search,
    all,
    agents,
    groups,
    ordered,
    /** How many the person put off. */
    later: all.filter((each) => isSnoozed(each, now)).length,
    select,
    /** The one that takes the place of this one when it is decided. */
    after: (id: string | undefined) => {
      const at = ids.indexOf(id ?? '');
      return ids[at + 1] ?? ids.filter((each) => each !== id).at(-1);
    },
    step: (id: string | undefined, by: number) => {
      const at = ids.indexOf(id ?? '');
      return ids[Math.max(0, Math.min(ids.length - 1, at + by))];
    },
  };
}

export type InboxState = ReturnType<typeof useInbox>;
