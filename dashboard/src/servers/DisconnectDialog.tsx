import type { ToolServer } from '@rota/sdk';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { ErrorNotice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { strings } from './strings';

const { disconnectDialog: words } = strings;

export function DisconnectDialog({ server, onClose }: { server: ToolServer; onClose: () => void }) {
  const cache = useQueryClient();
  const account = useAccount();
  const navigate = useNavigate();
  const disconnect = useMutation({
    mutationKey: keys.disconnect,
    mutationFn: () => api.toolServers.disconnect(server),
    onSuccess: async () => {
      await navigate({ to: '/$account/servers', params: { account } });
      cache.removeQueries({ queryKey: keys.server(server.id) });
      cache.invalidateQueries({ queryKey: keys.servers });
      toast(words.done(server.name));
    },
  });
  return (
    <Dialog
      title={words.title(server.name)}
      onClose={onClose}
      onSubmit={() => !disconnect.isPending && disconnect.mutate()}
      actions={
        <>
          <Button onClick={onClose}>{words.cancel}</Button>
          <Button type="submit" look="danger-solid" busy={disconnect.isPending}>
            {strings.disconnect}
          </Button>
        </>
      }
    >
      <ul className="effects soft">
        {words.effects(server.toolCount).map((effect) => (
          <li key={effect}>{effect}</li>
        ))}
      </ul>
      <p className="soft">{words.again}</p>
      {disconnect.error && <ErrorNotice error={disconnect.error} />}
    </Dialog>
  );
}
