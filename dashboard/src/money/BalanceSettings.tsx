import type { BalanceResponse, PatchCreditSettings } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { creditSettingsQuery } from '../api/queries';
import { Check } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { AlertSetting } from './AlertSetting';
import { strings } from './strings';

/** What happens when money runs low. */
export function BalanceSettings({
  balance,
  mayChange,
}: {
  balance: BalanceResponse;
  mayChange: boolean;
}) {
  const cache = useQueryClient();
  const { data } = useQuery(creditSettingsQuery);
  const change = useMutation({
    mutationFn: (body: PatchCreditSettings) => api.credits.updateSettings(body),
    onSuccess: (settings) => {
      cache.setQueryData(creditSettingsQuery.queryKey, { settings });
      cache.invalidateQueries({ queryKey: keys.money });
    },
  });
  if (!data) return null;
  // While a change is on its way, the control shows it.
  const wanted = change.isPending ? change.variables : {};
  const overflow = wanted.allowOverflow ?? data.settings.allowOverflow;
  const alertBelow =
    wanted.alertBelowCents !== undefined ? wanted.alertBelowCents : data.settings.alertBelowCents;
  const disabled = !mayChange || change.isPending;
  return (
    <div className="card-foot stack small">
      {balance.hasAllowance && (
        <Check
          label={strings.overflow}
          checked={overflow}
          disabled={disabled}
          onChange={(event) => change.mutate({ allowOverflow: event.target.checked })}
        />
      )}
      <AlertSetting
        below={alertBelow ?? null}
        available={balance.totalAvailable}
        disabled={disabled}
        onChange={(alertBelowCents) => change.mutate({ alertBelowCents })}
      />
      {!mayChange && <p className="tiny faint">{strings.adminsOnly}</p>}
      {change.error && <ErrorNotice error={change.error} />}
    </div>
  );
}
