import type { WebhookSecretResponse } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, fieldProblem, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input, TextArea } from '../ui/Field';
import { ErrorNotice } from '../ui/Notice';
import { strings } from './strings';
import { typesOf } from './types';

export function CreateWebhookDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (created: WebhookSecretResponse) => void;
}) {
  const cache = useQueryClient();
  const [url, setUrl] = useState('');
  const [description, setDescription] = useState('');
  const [types, setTypes] = useState('');
  const [tried, setTried] = useState(false);
  // A changed form is another action: it must not get the answer of the first one.
  const action = useRef({ form: '', key: '' });
  const create = useMutation({
    // The answer has the secret, so nothing keeps it.
    gcTime: 0,
    mutationFn: () => {
      const events = typesOf(types);
      const body = { url: url.trim(), description: description.trim() || null, events };
      const form = JSON.stringify(body);
      if (action.current.form !== form) action.current = { form, key: newIdempotencyKey() };
      return api.webhooks.create(body, { idempotencyKey: action.current.key });
    },
    onSuccess: (created) => {
      cache.invalidateQueries({ queryKey: keys.webhooks });
      onCreated(created);
    },
  });
  const submit = () => {
    setTried(true);
    if (url.trim() && !create.isPending) create.mutate();
  };
  return (
    <Dialog
      title={strings.createTitle}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={create.isPending}>
            {strings.create}
          </Button>
        </>
      }
    >
      <div className="stack-4">
        <Field
          label={strings.url}
          hint={strings.urlHint}
          error={tried && !url.trim() ? strings.urlMissing : fieldProblem(create.error, 'url')}
        >
          {(control) => (
            <Input
              {...control}
              type="url"
              inputMode="url"
              autoComplete="off"
              placeholder="https://example.com/webhooks/rota"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          )}
        </Field>
        <Field label={strings.description}>
          {(control) => (
            <Input
              {...control}
              autoComplete="off"
              maxLength={255}
              placeholder={strings.descriptionPlaceholder}
              value={description}
              onChange={(event) => setDescription(event.target.value)}
            />
          )}
        </Field>
        <Field
          label={strings.events}
          hint={strings.eventsHint}
          error={fieldProblem(create.error, 'events')}
        >
          {(control) => (
            <TextArea
              {...control}
              rows={3}
              value={types}
              onChange={(event) => setTypes(event.target.value)}
            />
          )}
        </Field>
      </div>
      {create.error && <ErrorNotice error={create.error} />}
    </Dialog>
  );
}
