import type { Webhook, WebhookSecretResponse } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { ConfirmDialog } from '../settings/ConfirmDialog';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { strings } from './strings';

interface Props {
  webhook: Webhook;
  onClose: () => void;
}

const useRefresh = () => {
  const cache = useQueryClient();
  return () => cache.invalidateQueries({ queryKey: keys.webhooks });
};

export function ReplayDialog({ webhook, onClose }: Props) {
  const [typed, setTyped] = useState(String(webhook.confirmedSequence || 1));
  const [tried, setTried] = useState(false);
  const from = /^[1-9]\d{0,14}$/.test(typed.trim()) ? Number(typed) : null;
  const replay = useMutation({
    mutationFn: (fromSequence: number) => api.webhooks.replay(webhook, { fromSequence }),
    onSuccess: () => {
      onClose();
      toast(strings.replayed);
    },
    onSettled: useRefresh(),
  });
  return (
    <Dialog
      title={strings.replayTitle}
      onClose={onClose}
      onSubmit={() => {
        setTried(true);
        if (from && !replay.isPending) replay.mutate(from);
      }}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={replay.isPending}>
            {strings.replay}
          </Button>
        </>
      }
    >
      <Field
        label={strings.fromEvent}
        hint={strings.replayHint}
        error={tried && !from ? strings.fromWrong : undefined}
      >
        {(control) => (
          <Input
            {...control}
            inputMode="numeric"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </Field>
      {replay.error && <ErrorNotice error={replay.error} />}
    </Dialog>
  );
}

export function RotateDialog({
  webhook,
  onClose,
  onRotated,
}: Props & { onRotated: (created: WebhookSecretResponse) => void }) {
  const [idempotencyKey] = useState(newIdempotencyKey);
  const rotate = useMutation({
    // The answer has the secret, so nothing keeps it.
    gcTime: 0,
    mutationFn: () => api.webhooks.rotateSecret(webhook, {}, { idempotencyKey }),
    onSuccess: (created) => {
      onClose();
      onRotated(created);
    },
    onSettled: useRefresh(),
  });
  return (
    <ConfirmDialog
      title={strings.rotateTitle}
      action={strings.rotate}
      busy={rotate.isPending}
      error={rotate.error}
      onConfirm={() => rotate.mutate()}
      onClose={onClose}
    >
      <p>{strings.rotateEffect}</p>
    </ConfirmDialog>
  );
}

export function DeleteDialog({ webhook, onClose, onDeleted }: Props & { onDeleted: () => void }) {
  const cache = useQueryClient();
  const remove = useMutation({
    mutationKey: keys.deleteWebhook,
    mutationFn: async () => {
      // Its deliveries must not be asked for any more.
      await cache.cancelQueries({ queryKey: [...keys.webhooks, webhook.id] });
      await api.webhooks.delete(webhook);
    },
    onSuccess: () => {
      onClose();
      onDeleted();
      toast(strings.deleted);
      // Only the list: the deliveries are gone.
      cache.invalidateQueries({ queryKey: keys.webhooks, exact: true });
    },
  });
  return (
    <ConfirmDialog
      title={strings.deleteTitle}
      action={strings.deleteAction}
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>
        <b>
          <SafeText>{webhook.url}</SafeText>
        </b>{' '}
        {strings.deleteEffect}
      </p>
    </ConfirmDialog>
  );
}
