/** Changes of the plan that need no payment. */
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { toast } from '../ui/toast';
import { useActionKeys } from './checkout';
import { longDay } from './dates';
import { strings } from './strings';

/** Fetches again what depends on the plan. */
export function usePlanChanged() {
  const cache = useQueryClient();
  return () => {
    for (const queryKey of [keys.plan, keys.money, keys.me, keys.agents]) {
      cache.invalidateQueries({ queryKey });
    }
  };
}

export function useCancelPlan() {
  const changed = usePlanChanged();
  const { keyOf, forget } = useActionKeys();
  return useMutation({
    mutationFn: () => api.subscriptions.cancel({ idempotencyKey: keyOf('cancel') }),
    onSuccess: (subscription) => {
      forget();
      changed();
      toast(strings.planWillEnd(longDay(subscription.currentPeriodEnd)));
    },
  });
}

export function useResumePlan() {
  const changed = usePlanChanged();
  const { keyOf, forget } = useActionKeys();
  return useMutation({
    mutationFn: () => api.subscriptions.resume({ idempotencyKey: keyOf('resume') }),
    onSuccess: () => {
      forget();
      changed();
      toast(strings.planContinues);
    },
  });
}
