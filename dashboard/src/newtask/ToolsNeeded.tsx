import type { AgentDetails } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Fragment } from 'react';
import { serversQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { type NeededServer, serversNeeded } from './draft';
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

/** Which tool servers the agent may use, and whether they are connected. */
export function ToolsNeeded({ agent }: { agent: AgentDetails }) {
  const account = useAccount();
  const servers = useQuery(serversQuery).data?.servers;
  const needed = serversNeeded(agent.tools, servers ?? []);
  const isUp = (server: NeededServer) =>
    server.connected.some(({ status }) => status === 'CONNECTED');
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
            <summary className="soft">{strings.patterns(agent.tools.length)}</summary>
            <ul>
              {agent.tools.map((pattern) => (
                <li key={pattern}>
                  <code>
                    <SafeText>{pattern}</SafeText>
                  </code>
                </li>
              ))}
            </ul>
          </details>
        )}
      </div>
    </li>
  );
}
