import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { api } from '../api/client';
import { keys } from '../api/keys';
import { serversQuery } from '../api/queries';
import { CrumbBar } from '../shell/TopBar';
import { Button, buttonClass } from '../ui/Button';
import { duration } from '../ui/format';
import { Loading } from '../ui/Loading';
import { Menu } from '../ui/Menu';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { toast } from '../ui/toast';
import { ChangedTools } from './ChangedTools';
import { DisconnectDialog } from './DisconnectDialog';
import { EditDialog } from './EditDialog';
import { Health } from './Health';
import { serverQuery } from './queries';
import { ServerHead } from './ServerHead';
import { statusWords, strings } from './strings';
import { Tools } from './Tools';

const route = getRouteApi('/$account/servers/$id');

export function ServerScreen() {
  const { account, id } = route.useParams();
  const cache = useQueryClient();
  const { data, error } = useQuery(serverQuery(id));
  // The list is often there already.
  const { data: list } = useQuery(serversQuery);
  const server = data?.server ?? list?.servers.find((each) => each.id === id);
  const [dialog, setDialog] = useState<'edit' | 'disconnect' | null>(null);
  const check = useMutation({
    mutationFn: () => api.toolServers.ping(id),
    onSuccess: (answer) => {
      cache.setQueryData(serverQuery(id).queryKey, { server: answer.server });
      toast(strings.checked(statusWords[answer.status], duration(answer.latencyMs)));
      return cache.invalidateQueries({ queryKey: keys.servers });
    },
  });
  return (
    <main className="main" id="main">
      <CrumbBar
        to="/$account/servers"
        parent={strings.servers}
        here={<SafeText>{server?.name ?? id}</SafeText>}
      >
        {server && (
          <>
            <Button icon="retry" busy={check.isPending} onClick={() => check.mutate()}>
              <span className="not-phone">{strings.checkNow}</span>
              <span className="only-phone">{strings.checkShort}</span>
            </Button>
            <Menu
              label={strings.more}
              look="quiet"
              actions={[
                { label: strings.edit, icon: 'pencil', onSelect: () => setDialog('edit') },
                {
                  label: strings.disconnect,
                  icon: 'trash',
                  onSelect: () => setDialog('disconnect'),
                },
              ]}
            />
          </>
        )}
      </CrumbBar>
      <div className="page page-narrow stack-6">
        {error && !data && (
          <ErrorNotice
            error={error}
            actions={
              <Link className={buttonClass({})} to="/$account/servers" params={{ account }}>
                {strings.allServers}
              </Link>
            }
          />
        )}
        {check.error && <ErrorNotice error={check.error} />}
        {!server && !error && <Loading />}
        {server && (
          <>
            <ServerHead server={server} onEdit={() => setDialog('edit')} />
            <ChangedTools id={id} />
            <Health id={id} />
            <Tools server={server} />
          </>
        )}
      </div>
      {server && dialog === 'edit' && (
        <EditDialog server={server} onClose={() => setDialog(null)} />
      )}
      {server && dialog === 'disconnect' && (
        <DisconnectDialog server={server} onClose={() => setDialog(null)} />
      )}
    </main>
  );
}
