/** What the browser calls the page: in its tab, its history and its bookmarks. */
import type { GetTaskResponse } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useMatches } from '@tanstack/react-router';
import { useEffect } from 'react';
import { keys } from '../api/keys';
import { agentsQuery, approvalsQuery, serversQuery } from '../api/queries';
import { visible } from '../ui/SafeText';
import { useWaitingCount } from './counts';
import { strings } from './strings';

const PRODUCT = 'Rota';
const MAX_NAME = 80;

/** "Tasks · Rota", "(3) Inbox · Rota". The name of what is shown stands before its kind. */
export function titled(name: string | undefined, place?: string, waiting = 0): string {
  const shown = name && visible(name);
  const short = shown && shown.length > MAX_NAME ? `${shown.slice(0, MAX_NAME - 1)}…` : shown;
  const count = waiting ? `(${waiting}) ` : '';
  return count + [short, place, PRODUCT].filter(Boolean).join(' · ');
}

const places: Record<string, string> = {
  '/$account/': strings.inbox,
  '/$account/new': strings.newTask,
  '/$account/new/many': strings.manyTasks,
  '/$account/tasks': strings.tasks,
  '/$account/agents': strings.agents,
  '/$account/servers': strings.servers,
  '/$account/money': strings.money,
  '/$account/settings': strings.settings,
  '/$account/settings/$section': strings.settings,
};

function useName(): string {
  const match = useMatches({ select: (matches) => matches.at(-1) });
  const { id = '', name = '' } = (match?.params ?? {}) as { id?: string; name?: string };
  const waiting = useWaitingCount();
  const approvals = useQuery(approvalsQuery).data?.approvals;
  // These are read by the screens. Here they are only watched.
  const task = useQuery<GetTaskResponse>({ queryKey: keys.task(id), enabled: false }).data?.task;
  const agents = useQuery({ ...agentsQuery, enabled: false }).data;
  const servers = useQuery(serversQuery).data?.servers;
  switch (match?.routeId) {
    case '/$account/':
      return titled(strings.inbox, undefined, waiting);
    case '/$account/reviews/$id': {
      const found = approvals?.find((approval) => approval.task.id === id);
      const about = found?.review.summary ?? found?.task.name;
      return titled(about ? strings.reviewOf(about) : strings.review);
    }
    case '/$account/tasks/$id':
      return titled(task?.name, strings.tasks);
    case '/$account/agents/$name':
      return titled(agents?.find((each) => each.name === name)?.displayName, strings.agents);
    case '/$account/servers/$id':
      return titled(servers?.find((each) => each.id === id)?.name, strings.servers);
    default:
      return titled(places[match?.routeId ?? '']);
  }
}

export function useTitle(): void {
  const title = useName();
  useEffect(() => {
    document.title = title;
    return () => {
      document.title = PRODUCT;
    };
  }, [title]);
}
