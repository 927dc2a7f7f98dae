import type { AgentDetails, ToolServer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import { toolWords } from '../agents/toolWords';
import { serversQuery } from '../api/queries';
import { toolsQuery } from '../servers/queries';
import { useAccount } from '../shell/account';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { blockedTools, type NeededServer, serversNeeded } from './draft';
import { strings } from './strings';

function Names({ label, servers }: { label: string; servers: NeededServer[] }) {
  if (!servers.length) return null;
  return (
    <span>
      {label}{' '}
      {servers.map(({ name }, at) => (
        <Fragment key={name}>
          {at > 0 && ', '}
          <b>
            <SafeText>{name}</SafeText>
          </b>
        </Fragment>
      ))}
      .{' '}
    </span>
  );
}

/** A server that changed tools still offers the others. */
const canBeUsed = ({ status }: ToolServer): boolean =>
  status === 'CONNECTED' || status === 'CHANGED';

/** Which of a server's tools the agent cannot use before somebody accepts them. */
function Blocked({ needed, server }: { needed: NeededServer; server: ToolServer }) {
  const account = useAccount();
  const { data } = useQuery(toolsQuery(server.id));
  if (!data) return null;
  const { usable, blocked } = blockedTools(needed, data.tools);
  if (!blocked) return null;
  return (
    <span>
      <b>
        <SafeText>{server.name}</SafeText>
      </b>
      : {strings.blocked(blocked, usable)}{' '}
      <Link className="link" to="/$account/servers/$id" params={{ account, id: server.id }}>
        {strings.compare}
      </Link>{' '}
    </span>
  );
}

/** Which tool servers the agent may use, and whether they are connected. */
export function ToolsNeeded({ agent }: { agent: AgentDetails }) {
  const account = useAccount();
  const servers = useQuery(serversQuery).data?.servers;
  const needed = serversNeeded(agent.tools, servers ?? []);
  const isUp = (server: NeededServer) => server.connected.some(canBeUsed);
  const missing = needed.filter((server) => !server.connected.length);
  return (
    <li>
      <Icon name="tool" />
      <div>
        <p className="strong">{strings.usesTitle(needed.length)}</p>
        {!needed.length && <p className="small soft">{strings.usesNothing}</p>}
        {servers && (
          <p className="small soft wrap">
            <Names label={strings.connected} servers={needed.filter(isUp)} />
            <Names
              label={strings.trouble}
              servers={needed.filter((server) => server.connected.length && !isUp(server))}
            />
            {needed.flatMap((each) =>
              each.connected
                .filter(({ status }) => status === 'CHANGED')
                .map((server) => <Blocked key={server.id} needed={each} server={server} />),
            )}
            <Names label={strings.notConnected} servers={missing} />
            {missing.length > 0 && (
              <Link className="link" to="/$account/servers" params={{ account }}>
                {strings.connect}
              </Link>
            )}
          </p>
        )}
        {agent.tools.length > 0 && (
          <details className="small patterns">
            <summary className="soft">{strings.showTools}</summary>
            <ul>
              {agent.tools.map((pattern) => (
                <li key={pattern}>
                  <SafeText>{toolWords(pattern)}</SafeText>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </li>
  );
}
