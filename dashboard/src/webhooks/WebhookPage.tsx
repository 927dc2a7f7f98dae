import type { Webhook, WebhookSecretResponse } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { SectionHead } from '../settings/SectionHead';
import { Button } from '../ui/Button';
import { Facts } from '../ui/Facts';
import { Menu } from '../ui/Menu';
import { ErrorNotice, Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { toast } from '../ui/toast';
import { Deliveries } from './Deliveries';
import { DeleteDialog, ReplayDialog, RotateDialog } from './dialogs';
import { strings } from './strings';
import { StateBadge } from './WebhookTable';

type Asked = 'replay' | 'rotate' | 'delete' | null;

/** One webhook: how far it has come, what is wrong with it, and what was sent. */
export function WebhookPage({
  webhook,
  secret,
  onSecret,
  onBack,
}: {
  webhook: Webhook;
  secret: ReactNode;
  onSecret: (created: WebhookSecretResponse) => void;
  onBack: () => void;
}) {
  const cache = useQueryClient();
  const [asked, setAsked] = useState<Asked>(null);
  const refresh = () => cache.invalidateQueries({ queryKey: keys.webhooks });
  const enable = useMutation({
    mutationFn: (enabled: boolean) => api.webhooks.update(webhook, { enabled }),
    onSuccess: ({ enabled }) => toast(enabled ? strings.enabled : strings.disabled),
    onSettled: refresh,
  });
  const test = useMutation({
    mutationFn: () => api.webhooks.test(webhook),
    onSuccess: ({ delivered }) => toast(delivered ? strings.testArrived : strings.testFailed),
    onSettled: refresh,
  });
  const error = enable.error ?? test.error;
  return (
    <>
      <Button size="s" look="quiet" icon="left" className="webhook-back" onClick={onBack}>
        {strings.back}
      </Button>
      <SectionHead
        title={webhook.description ?? strings.name}
        hint={<SafeText>{webhook.url}</SafeText>}
      >
        <div className="row row-wrap">
          <Button busy={test.isPending} onClick={() => test.mutate()}>
            {strings.test}
          </Button>
          {!webhook.enabled && (
            <Button look="primary" busy={enable.isPending} onClick={() => enable.mutate(true)}>
              {strings.enable}
            </Button>
          )}
          <Menu
            label={strings.moreActions}
            actions={[
              { label: strings.replay, icon: 'undo', onSelect: () => setAsked('replay') },
              // Another secret would take the place of one that is shown.
              ...(secret
                ? []
                : [
                    {
                      label: strings.rotate,
                      icon: 'key' as const,
                      onSelect: () => setAsked('rotate'),
                    },
                  ]),
              ...(webhook.enabled
                ? [
                    {
                      label: strings.disable,
                      icon: 'stop' as const,
                      onSelect: () => enable.mutate(false),
                    },
                  ]
                : []),
              { label: strings.delete, icon: 'trash', onSelect: () => setAsked('delete') },
            ]}
          />
        </div>
      </SectionHead>
      {secret}
      {error && <ErrorNotice error={error} />}
      <Problems webhook={webhook} />
      <Facts
        facts={[
          { name: strings.state, value: <StateBadge state={webhook.state} /> },
          { name: strings.confirmed, value: webhook.confirmedSequence },
          {
            name: strings.lastDelivered,
            value: webhook.lastDeliveredAt ? <Ago at={webhook.lastDeliveredAt} /> : strings.never,
          },
        ]}
      />
      <Deliveries webhook={webhook} />
      {asked === 'replay' && <ReplayDialog webhook={webhook} onClose={() => setAsked(null)} />}
      {asked === 'rotate' && (
        <RotateDialog webhook={webhook} onClose={() => setAsked(null)} onRotated={onSecret} />
      )}
      {asked === 'delete' && (
        <DeleteDialog webhook={webhook} onClose={() => setAsked(null)} onDeleted={onBack} />
      )}
    </>
  );
}

function Problems({ webhook }: { webhook: Webhook }) {
  const { disabledReason, lastError, nextAttemptAt, skipped } = webhook;
  return (
    <>
      {disabledReason && (
        <Notice tone="bad" title={strings.disabledTitle}>
          <p>{strings.reasons[disabledReason]}</p>
          {lastError && (
            <p>
              <SafeText>{lastError}</SafeText>
            </p>
          )}
          <p>{strings.catchesUp}</p>
        </Notice>
      )}
      {webhook.state === 'failing' && (
        <Notice tone="wait" title={strings.failingTitle}>
          <p>
            <SafeText>{lastError ?? ''}</SafeText>
          </p>
          {nextAttemptAt && (
            <p>
              {strings.nextAttempt} <Ago at={nextAttemptAt} />.
            </p>
          )}
        </Notice>
      )}
      {skipped && (
        <Notice tone="wait" title={strings.skippedTitle}>
          <p>{strings.skipped(skipped.fromSequence, skipped.toSequence)}</p>
        </Notice>
      )}
    </>
  );
}
