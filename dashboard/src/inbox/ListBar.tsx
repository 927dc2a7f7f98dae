import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { agentsQuery } from '../api/queries';
import { agentOf } from '../review/people';
import { ConnectionMark, SettingsOnPhone } from '../shell/TopBar';
import { Badge } from '../ui/Badge';
import { Menu } from '../ui/Menu';
import { strings } from './strings';
import { EXTERNAL, type InboxState } from './useInbox';

/** The bar over the list: how many wait, whether it is live, which agents are shown. */
export function ListBar({ inbox }: { inbox: InboxState }) {
  const navigate = useNavigate({ from: '/$account' });
  const agents = useQuery(agentsQuery).data;
  const nameOf = (name: string) =>
    name === EXTERNAL ? strings.external : agentOf(agents, name).displayName;
  const show = (agent: string | undefined) =>
    navigate({ search: (before) => ({ ...before, agent }), replace: true });
  const { agent, later } = inbox.search;
  return (
    <header className="topbar">
      <h1>{later ? strings.titleLater : strings.title}</h1>
      {inbox.ordered.length > 0 && (
        <Badge>{(later ? strings.putOff : strings.waiting)(inbox.ordered.length)}</Badge>
      )}
      <ConnectionMark />
      {(inbox.agents.length > 1 || agent) && (
        <span className="row push">
          <Menu
            label={agent ? nameOf(agent) : strings.allAgents}
            look="quiet"
            size="s"
            actions={[
              {
                label: strings.allAgents,
                checked: !agent,
                onSelect: () => show(undefined),
              },
              ...inbox.agents.map((name) => ({
                label: nameOf(name),
                checked: name === agent,
                onSelect: () => show(name),
              })),
            ]}
          >
            <span className="clip">{agent ? nameOf(agent) : strings.allAgents}</span>
          </Menu>
        </span>
      )}
      <SettingsOnPhone />
    </header>
  );
}
