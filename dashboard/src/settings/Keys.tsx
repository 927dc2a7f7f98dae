import type { ApiKey, KeyCreatedResponse } from '@rota/sdk';
import { queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { meQuery } from '../api/queries';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { ConfirmDialog } from './ConfirmDialog';
import { CreateKeyDialog } from './CreateKeyDialog';
import { FreshSecret } from './FreshSecret';
import { KeyTable } from './KeyTable';
import { McpAccess } from './McpAccess';
import { SectionHead } from './SectionHead';
import { strings } from './strings';

const words = strings.keys;

const keysQuery = queryOptions({
  queryKey: keys.apiKeys,
  queryFn: () => api.keys.list().firstPage(),
});

export function Keys() {
  const { data: me } = useQuery(meQuery);
  const { data, error } = useQuery(keysQuery);
  const [creating, setCreating] = useState(false);
  // The secret is only here, never in the cache: it goes when the page goes.
  const [fresh, setFresh] = useState<KeyCreatedResponse | null>(null);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  return (
    <>
      <SectionHead
        title={words.name}
        hint={<SafeText>{words.hint(me?.account.name ?? strings.account)}</SafeText>}
      >
        {!error && (
          <Button
            look="primary"
            icon="plus"
            // Another secret would take the place of this one.
            disabled={fresh !== null}
            onClick={() => setCreating(true)}
          >
            {words.create}
          </Button>
        )}
      </SectionHead>
      {fresh && (
        <FreshSecret
          secret={fresh.secret}
          title={
            <>
              “<SafeText>{fresh.key.name}</SafeText>” {words.ready}
            </>
          }
          words={words}
          onStored={() => setFresh(null)}
        >
          {words.copyNow}
        </FreshSecret>
      )}
      {error && <ErrorNotice error={error} />}
      {!data && !error && <Loading />}
      {data && <KeyTable apiKeys={data.keys} onRevoke={setRevoking} />}
      {data && <p className="small soft">{words.limit}</p>}
      <McpAccess />
      {creating && (
        <CreateKeyDialog
          onClose={() => setCreating(false)}
          onCreated={(created) => {
            setCreating(false);
            setFresh(created);
          }}
        />
      )}
      {revoking && (
        <RevokeDialog
          apiKey={revoking}
          onClose={() => setRevoking(null)}
          onRevoked={() => {
            if (fresh?.key.id === revoking.id) setFresh(null);
          }}
        />
      )}
    </>
  );
}

function RevokeDialog({
  apiKey,
  onClose,
  onRevoked,
}: {
  apiKey: ApiKey;
  onClose: () => void;
  onRevoked: () => void;
}) {
  const cache = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => api.keys.delete(apiKey),
    onSuccess: () => {
      onRevoked();
      onClose();
      toast(words.revoked);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: keys.apiKeys }),
  });
  return (
    <ConfirmDialog
      title={words.revokeTitle}
      action={words.revokeAction}
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>
        <b>
          <SafeText>{apiKey.name}</SafeText>
        </b>{' '}
        (<code>{apiKey.prefix}…</code>) {words.revokeEffect}
      </p>
    </ConfirmDialog>
  );
}
