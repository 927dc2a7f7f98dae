import type { ConnectServer, ServerToolsResponse } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, newIdempotencyKey } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { FormError } from '../ui/FormError';
import { SafeText } from '../ui/SafeText';
import { AddressFields, HeaderFields, standsAtField, TokenField } from './ConnectionFields';
import { connectBody, emptyConnection } from './form';
import { Hints } from './Hints';
import { strings } from './strings';

const { connectDialog: words } = strings;

/** One key for one content: sending the same again never connects twice. */
function useKeyFor() {
  const last = useRef({ body: '', key: '' });
  return (body: ConnectServer): string => {
    const text = JSON.stringify(body);
    if (last.current.body !== text) last.current = { body: text, key: newIdempotencyKey() };
    return last.current.key;
  };
}

export function ConnectDialog({ onClose }: { onClose: () => void }) {
  const cache = useQueryClient();
  const [form, setForm] = useState(emptyConnection);
  const keyFor = useKeyFor();
  const connect = useMutation({
    mutationFn: (body: ConnectServer) =>
      api.toolServers.connect(body, { idempotencyKey: keyFor(body) }),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.servers }),
    // It holds secrets.
    gcTime: 0,
  });
  if (connect.data) return <Connected connected={connect.data} onClose={onClose} />;
  const ready = form.name.trim() !== '' && form.url.trim() !== '';
  const submit = () => {
    if (ready && !connect.isPending) connect.mutate(connectBody(form));
  };
  const change = (changed: Partial<typeof form>) => setForm((old) => ({ ...old, ...changed }));
  return (
    <Dialog
      title={words.title}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" look="primary" busy={connect.isPending} disabled={!ready}>
            {words.submit}
          </Button>
        </>
      }
    >
      <AddressFields form={form} onChange={change} error={connect.error} />
      <TokenField form={form} onChange={change} />
      <HeaderFields form={form} onChange={change} />
      <div className="what-box small">
        <h3>{words.what}</h3>
        <ul>
          <li>{words.whatUse(form.name.trim() || 'name')}</li>
          <li>{words.whatAsk}</li>
          <li>{words.whatAccept}</li>
        </ul>
      </div>
      {connect.error && !standsAtField(connect.error) && <FormError error={connect.error} />}
    </Dialog>
  );
}

function Connected({
  connected: { server, tools },
  onClose,
}: {
  connected: ServerToolsResponse;
  onClose: () => void;
}) {
  const account = useAccount();
  const navigate = useNavigate();
  const open = () => navigate({ to: '/$account/servers/$id', params: { account, id: server.id } });
  return (
    <Dialog
      key="connected"
      title={words.connected(server.name, tools.length)}
      onClose={onClose}
      onSubmit={open}
      actions={
        <>
          <Button onClick={onClose}>{words.done}</Button>
          <Button type="submit" look="primary">
            {words.open}
          </Button>
        </>
      }
    >
      <p className="soft">{tools.length ? words.connectedHint : words.noTools}</p>
      <ul className="tool-brief">
        {tools.map((tool) => (
          <li key={tool.name} className="stack">
            <p className="row row-wrap">
              <code className="strong">
                <SafeText>{tool.name}</SafeText>
              </code>
              <Hints annotations={tool.annotations} />
            </p>
            {tool.description && (
              <p className="small soft two">
                <SafeText>{tool.description}</SafeText>
              </p>
            )}
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
