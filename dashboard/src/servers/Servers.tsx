import type { ToolServer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { serversQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { ListScreen } from '../shell/ListScreen';
import { count } from '../ui/format';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { ConnectDialog } from './ConnectDialog';
import { ServerState } from './ServerState';
import { strings } from './strings';

const { columns } = strings;

export function Servers() {
  const { data, error } = useQuery(serversQuery);
  const [connecting, setConnecting] = useState(false);
  return (
    <ListScreen
      title={strings.servers}
      total={data?.total}
      error={error}
      add={strings.connect}
      addShort={strings.connectShort}
      onAdd={() => setConnecting(true)}
      none={strings.none}
      noneHint={strings.noneHint}
    >
      {data && data.total > 0 && <ServerTable servers={data.servers} />}
      {connecting && <ConnectDialog onClose={() => setConnecting(false)} />}
    </ListScreen>
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
        </p>
        <p className="small soft clip" title={server.url}>
          <SafeText>{server.url}</SafeText>
        </p>
      </td>
      <td>
        <ServerState status={server.status} now />
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
