import type { ToolServer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { serversQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { TopBar } from '../shell/TopBar';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { count } from '../ui/format';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { ConnectDialog } from './ConnectDialog';
import { ServerState } from './ServerState';
import { strings } from './strings';

const { columns } = strings;

export function Servers() {
  const { data, error } = useQuery(serversQuery);
  const [connecting, setConnecting] = useState(false);
  const empty = data?.servers.length === 0;
  const connect = (
    <Button look="primary" icon="plus" onClick={() => setConnecting(true)}>
      <span className={empty ? undefined : 'not-phone'}>{strings.connect}</span>
      {!empty && <span className="only-phone">{strings.connectShort}</span>}
    </Button>
  );
  return (
    <main className="main" id="main">
      <TopBar title={strings.servers}>
        {data && !empty && <Badge>{data.total}</Badge>}
        <span className="row push">{!empty && connect}</span>
      </TopBar>
      {error && !data && (
        <div className="page">
          <ErrorNotice error={error} />
        </div>
      )}
      {!data && !error && <Loading />}
      {empty && (
        <Empty title={strings.none}>
          <p className="empty-text">{strings.noneHint}</p>
          {connect}
        </Empty>
      )}
      {data && !empty && <ServerTable servers={data.servers} />}
      {connecting && <ConnectDialog onClose={() => setConnecting(false)} />}
    </main>
  );
}

function ServerTable({ servers }: { servers: ToolServer[] }) {
  return (
    <table className="table table-servers">
      <thead>
        <tr>
          <th scope="col">{columns.server}</th>
          <th scope="col">{columns.status}</th>
          <th scope="col" className="end">
            {columns.tools}
          </th>
          <th scope="col" className="end">
            {columns.checked}
          </th>
        </tr>
      </thead>
      <tbody>
        {servers.map((server) => (
          <ServerRow key={server.id} server={server} />
        ))}
      </tbody>
    </table>
  );
}

function ServerRow({ server }: { server: ToolServer }) {
  const account = useAccount();
  return (
    <tr>
      <td>
        <p className="row">
          <Link
            className="strong name"
            to="/$account/servers/$id"
            params={{ account, id: server.id }}
          >
            <SafeText>{server.name}</SafeText>
          </Link>
          {server.status === 'CHANGED' && (
            <Badge tone="wait" icon="alert">
              {strings.toAccept}
            </Badge>
          )}
        </p>
        <p className="small soft clip" title={server.url}>
          <SafeText>{server.url}</SafeText>
        </p>
      </td>
      <td>
        <ServerState status={server.status} />
        {server.lastError && (
          <p className="small soft two">
            <SafeText>{server.lastError}</SafeText>
          </p>
        )}
      </td>
      <td className="end" data-l={columns.tools}>
        {count(server.toolCount)}
      </td>
      <td className="end faint" data-l={columns.checked}>
        <Ago at={server.lastCheckedAt} />
      </td>
    </tr>
  );
}
