import type { ToolServer, UpdateServer } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Select } from '../ui/Field';
import { FormError } from '../ui/FormError';
import { Notice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { AddressFields, HeaderFields, standsAtField, TokenField } from './ConnectionFields';
import { type Edit, emptyConnection, type Secret, updateBody } from './form';
import { showChange } from './queries';
import { strings } from './strings';

const { editDialog: words } = strings;

export function EditDialog({
  server: current,
  onClose,
}: {
  server: ToolServer;
  onClose: () => void;
}) {
  const cache = useQueryClient();
  // As it was opened: what somebody else changes meanwhile is not a change of this form.
  const [server] = useState(current);
  const [form, setForm] = useState<Edit>({
    ...emptyConnection,
    name: server.name,
    url: server.url,
    transport: server.transport,
    tokenChange: 'keep',
    headersChange: 'keep',
  });
  const save = useMutation({
    mutationFn: (body: UpdateServer) => api.toolServers.update(server, body),
    onSuccess: (answer) => {
      showChange(cache, server.id, answer);
      toast(words.saved);
      onClose();
    },
    // It holds secrets.
    gcTime: 0,
  });
  const body = updateBody(server, form);
  const missing = form.tokenChange === 'replace' && !form.token.trim();
  const ready = Object.keys(body).length > 0 && !missing && form.name.trim() && form.url.trim();
  const connects = Object.keys(body).some((field) => field !== 'name');
  const change = (changed: Partial<Edit>) => setForm((old) => ({ ...old, ...changed }));
  return (
    <Dialog
      title={words.title(server.name)}
      onClose={onClose}
      onSubmit={() => ready && !save.isPending && save.mutate(body)}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" look="primary" busy={save.isPending} disabled={!ready}>
            {words.save}
          </Button>
        </>
      }
    >
      <AddressFields form={form} onChange={change} error={save.error} />
      {body.name && <p className="small soft">{words.rename(server.name)}</p>}
      {body.url && <Notice tone="wait">{words.newUrl}</Notice>}
      <SecretChange
        label={words.tokenNow}
        value={form.tokenChange}
        onChange={(tokenChange) => change({ tokenChange })}
      />
      {form.tokenChange === 'replace' && <TokenField form={form} onChange={change} replaces />}
      <SecretChange
        label={words.headersNow}
        value={form.headersChange}
        onChange={(headersChange) => change({ headersChange })}
      />
      {form.headersChange === 'replace' && <HeaderFields form={form} onChange={change} replaces />}
      {connects && <p className="small soft">{words.connects}</p>}
      {save.error && !standsAtField(save.error) && <FormError error={save.error} />}
    </Dialog>
  );
}

function SecretChange({
  label,
  value,
  onChange,
}: {
  label: string;
  value: Secret;
  onChange: (value: Secret) => void;
}) {
  return (
    <Field label={label}>
      {(control) => (
        <Select
          {...control}
          value={value}
          onChange={(event) => onChange(event.target.value as Secret)}
        >
          <option value="keep">{words.keep}</option>
          <option value="replace">{words.replace}</option>
          <option value="remove">{words.remove}</option>
        </Select>
      )}
    </Field>
  );
}
