import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../api/client';
import { approvalsQuery } from '../api/queries';
import { Menu } from '../ui/Menu';
import { SafeText } from '../ui/SafeText';
import { useNow } from '../ui/Time';
import { toast } from '../ui/toast';
import { useReviewView } from './ReviewContext';
import { snoozeChoices } from './snooze';
import { strings } from './strings';

/** "Not now": the card moves to Later for this person. It denies nothing. */
export function SnoozeMenu({ onSnoozed, large }: { onSnoozed: () => void; large: boolean }) {
  const { data } = useReviewView();
  const cache = useQueryClient();
  const id = data.task.id;
  const now = useNow();
  const snoozed = useQuery(approvalsQuery).data?.approvals.some(
    (each) => each.task.id === id && each.snoozedUntil && Date.parse(each.snoozedUntil) > now,
  );
  const snooze = useMutation({
    mutationFn: (until: Date | null) =>
      api.tasks.snooze(id, { until: until?.toISOString() ?? null }),
    onSuccess: (snoozedUntil) => {
      cache.setQueryData(approvalsQuery.queryKey, (before) =>
        before
          ? {
              ...before,
              approvals: before.approvals.map((each) =>
                each.task.id === id ? { ...each, snoozedUntil } : each,
              ),
            }
          : before,
      );
      toast(snoozedUntil ? strings.snoozed : strings.unsnoozed);
      if (snoozedUntil) onSnoozed();
    },
    onError: (error) => toast(<SafeText>{error.message}</SafeText>, 'alert'),
  });
  const choices = snoozeChoices(new Date(), data.review.expiresAt);
  return (
    <Menu
      label={strings.notNow}
      size={large ? 'l' : 'm'}
      look={large ? 'normal' : 'quiet'}
      icon="clock"
      shortcut="N"
      aria-keyshortcuts="n"
      busy={snooze.isPending}
      disabled={!choices.length && !snoozed}
      title={choices.length ? undefined : strings.snooze.tooShort}
      actions={[
        ...(snoozed ? [{ label: strings.snooze.now, onSelect: () => snooze.mutate(null) }] : []),
        ...choices.map(({ label, until }) => ({ label, onSelect: () => snooze.mutate(until) })),
      ]}
    />
  );
}
