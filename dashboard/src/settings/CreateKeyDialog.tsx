import type { KeyCreatedResponse, Scope } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, fieldProblem, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input, Select } from '../ui/Field';
import { day } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { ScopeChoice } from './ScopeChoice';
import { firstScopes, strings } from './strings';

const words = strings.keys;
const lengths = [30, 90, 365, 0] as const;
type Length = (typeof lengths)[number];

/** When a key of so many days ends. Null if never. */
const endOf = (days: Length, now: number): string | null =>
  days ? new Date(now + days * 86_400_000).toISOString() : null;

export function CreateKeyDialog({
  onClose,
  onCreated,
}: {
  onClose: () => void;
  onCreated: (created: KeyCreatedResponse) => void;
}) {
  const cache = useQueryClient();
  const [name, setName] = useState('');
  const [days, setDays] = useState<Length>(90);
  const [scopes, setScopes] = useState<Scope[]>(firstScopes);
  const [tried, setTried] = useState(false);
  const [opened] = useState(Date.now);
  // A changed form is another action: it must not get the answer of the first one.
  const action = useRef({ form: '', key: '' });
  const create = useMutation({
    // The answer has the secret, so nothing keeps it.
    gcTime: 0,
    mutationFn: () => {
      const body = { name: name.trim(), scopes, expiresAt: endOf(days, opened) };
      const form = JSON.stringify(body);
      if (action.current.form !== form) action.current = { form, key: newIdempotencyKey() };
      return api.keys.create(body, { idempotencyKey: action.current.key });
    },
    onSuccess: (created) => {
      cache.invalidateQueries({ queryKey: keys.apiKeys });
      onCreated(created);
    },
  });
  const nameError = tried && !name.trim() ? words.nameMissing : fieldProblem(create.error, 'name');
  const submit = () => {
    setTried(true);
    if (name.trim() && scopes.length && !create.isPending) create.mutate();
  };
  const ends = endOf(days, opened);
  return (
    <Dialog
      title={words.createTitle}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={create.isPending}>
            {words.create}
          </Button>
        </>
      }
    >
      <div className="form">
        <Field label={words.keyName} error={nameError}>
          {(control) => (
            <Input
              {...control}
              placeholder={words.namePlaceholder}
              maxLength={100}
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <Field label={words.expires} hint={ends ? words.endsOn(day(ends)) : words.endsNever}>
          {(control) => (
            <Select
              {...control}
              value={days}
              onChange={(event) => setDays(Number(event.target.value) as Length)}
            >
              {lengths.map((length) => (
                <option key={length} value={length}>
                  {words.expiry[length]}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      <ScopeChoice
        chosen={scopes}
        onChange={setScopes}
        error={tried && !scopes.length ? words.scopesMissing : undefined}
      />
      {create.error && <ErrorNotice error={create.error} />}
    </Dialog>
  );
}
