import type { Subscription } from '@rota/sdk';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { ErrorNotice } from '../ui/Notice';
import { longDay } from './dates';
import { tierName } from './planRules';
import { strings } from './strings';
import { useCancelPlan } from './usePlanChange';

export function CancelPlanDialog({ live, onClose }: { live: Subscription; onClose: () => void }) {
  const cancel = useCancelPlan();
  const name = tierName(live.tier);
  const end = longDay(live.currentPeriodEnd);
  const submit = () => {
    if (!cancel.isPending) cancel.mutate(undefined, { onSuccess: onClose });
  };
  return (
    <Dialog
      title={strings.cancelTitle(name)}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.keepPlan}</Button>
          <Button look="danger-solid" type="submit" busy={cancel.isPending}>
            {strings.cancelPlan}
          </Button>
        </>
      }
    >
      <p>{strings.cancelEffect(name, end)}</p>
      <p className="soft">{strings.cancelKeeps}</p>
      {cancel.error && <ErrorNotice error={cancel.error} />}
    </Dialog>
  );
}
