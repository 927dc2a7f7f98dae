import { useQuery } from '@tanstack/react-query';
import { Fragment } from 'react';
import { agentsQuery, serversQuery } from '../api/queries';
import { useCanApprove } from '../review/people';
import { Button } from '../ui/Button';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';
import type { InboxState } from './useInbox';
import { WaitCard } from './WaitCard';

/** Everything that waits, oldest first; what is alike stands together. */
export function WaitList({
  inbox,
  selected,
  checked,
  onCheck,
  onTogether,
}: {
  inbox: InboxState;
  selected: string | undefined;
  checked: ReadonlySet<string>;
  onCheck: (ids: string[], yes: boolean) => void;
  /** Selects a whole group. */
  onTogether: (ids: string[]) => void;
}) {
  const agents = useQuery(agentsQuery).data;
  const servers = useQuery(serversQuery).data?.servers;
  const canDecide = useCanApprove();
  const later = !!inbox.search.later;
  return (
    <ol aria-label={later ? strings.listLater : strings.list}>
      {inbox.groups.map((group) => (
        <Fragment key={group.key}>
          {group.approvals.length > 1 && (
            <li className="bundle">
              <span>
                <strong>{strings.alike(group.approvals.length)}</strong>{' '}
                <SafeText>{group.words}</SafeText>
              </span>
              {canDecide && (
                <Button
                  size="s"
                  className="push"
                  onClick={() => onTogether(group.approvals.map((each) => each.task.id))}
                >
                  {strings.decideTogether}
                </Button>
              )}
            </li>
          )}
          {group.approvals.map((approval) => (
            <WaitCard
              key={approval.task.id}
              approval={approval}
              agents={agents}
              servers={servers}
              state={{
                selected: approval.task.id === selected,
                checked: checked.has(approval.task.id),
                later,
                onCheck: canDecide ? (yes) => onCheck([approval.task.id], yes) : undefined,
              }}
            />
          ))}
        </Fragment>
      ))}
    </ol>
  );
}
