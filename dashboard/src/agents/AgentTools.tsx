import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { serversQuery } from '../api/queries';
import { ServerState } from '../servers/ServerState';
import { useAccount } from '../shell/account';
import { SafeText } from '../ui/SafeText';
import { byServer, type ToolGroup } from './approval';
import { strings } from './strings';

/** The tools of an agent by server, and whether the account has that server. */
export function AgentTools({ tools }: { tools: string[] }) {
  if (!tools.length) return <p className="card-pad-s small soft">{strings.noTools}</p>;
  return (
    <ul className="tool-groups">
      {byServer(tools).map((group) => (
        <Group key={group.server} group={group} />
      ))}
    </ul>
  );
}

function Group({ group }: { group: ToolGroup }) {
  const account = useAccount();
  const { data } = useQuery(serversQuery);
  const server = data?.servers.find((each) => each.name === group.server);
  const any = group.server.includes('*');
  return (
    <li className="stack">
      <p className="row small">
        {server ? (
          <Link
            className="strong link"
            to="/$account/servers/$id"
            params={{ account, id: server.id }}
          >
            <SafeText>{server.name}</SafeText>
          </Link>
        ) : (
          <span className="strong">
            <SafeText>{group.server === '*' ? strings.anyServer : group.server}</SafeText>
          </span>
        )}
        <span className="push">
          {server && <ServerState status={server.status} />}
          {data && !server && !any && (
            <span className="tiny faint" title={strings.notConnectedHint}>
              {strings.notConnected}
            </span>
          )}
        </span>
      </p>
      <p className="row row-wrap tight">
        {group.tools.map((tool) => (
          <code key={tool} className="tool-name">
            <SafeText>{tool}</SafeText>
          </code>
        ))}
      </p>
    </li>
  );
}
