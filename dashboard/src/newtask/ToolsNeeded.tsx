import type { AgentDetails, ToolServer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { toolWords } from '../agents/toolWords';
import { serversQuery } from '../api/queries';
import { toolsQuery } from '../servers/queries';
import { useAccount } from '../shell/account';
import { Icon } from '../ui/Icon';
import { SafeText } from '../ui/SafeText';
import { blockedTools, type NeededServer, serversNeeded } from './draft';
import { strings } from './strings';

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
    <span className="needs-blocked">
      {server.name !== needed.name && (
        <>
          <SafeText>{server.name}</SafeText>:{' '}
        </>
      )}
      {strings.blocked(blocked, usable)}{' '}
      <Link className="link" to="/$account/servers/$id" params={{ account, id: server.id }}>
        {strings.compare}
      </Link>
    </span>
  );
}

/** One line: the server, and whether the agent can use it now. */
function NeededLine({ needed }: { needed: NeededServer }) {
  const account = useAccount();
  const { name, connected } = needed;
  const shown = name === '*' ? strings.anyServer : name;
  return (
    <li>
      <b>
        <SafeText>{shown}</SafeText>
      </b>
      <span className="push">
        {connected.some(canBeUsed)
          ? strings.connected
          : connected.length
            ? strings.trouble
            : strings.notConnected}{' '}
        {!connected.length && (
          <Link className="link" to="/$account/servers" params={{ account }}>
            {strings.connect}
            <span className="sr">
              {' '}
              <SafeText>{shown}</SafeText>
            </span>
          </Link>
        )}
      </span>
      {connected
        .filter(({ status }) => status === 'CHANGED')
        .map((server) => (
          <Blocked key={server.id} needed={needed} server={server} />
        ))}
    </li>
  );
}

/** Which tool servers the agent may use, and whether they are connected. */
export function ToolsNeeded({ agent }: { agent: AgentDetails }) {
  const servers = useQuery(serversQuery).data?.servers;
  const needed = serversNeeded(agent.tools, servers ?? []);
  return (
    <li>
      <Icon name="tool" />
      <div>
        <p className="strong">{strings.usesTitle(needed.length)}</p>
        {!needed.length && <p className="small soft">{strings.usesNothing}</p>}
        {servers && needed.length > 0 && (
          <ul className="needs small soft wrap">
            {needed.map((each) => (
              <NeededLine key={each.name} needed={each} />
            ))}
          </ul>
        )}
        {agent.tools.length > 0 && (
          <details className="small opens patterns">
            <summary className="soft">
              {strings.showTools}
              <Icon name="down" small />
            </summary>
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
