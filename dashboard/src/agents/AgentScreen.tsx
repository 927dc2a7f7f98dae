import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { agentsQuery } from '../api/queries';
import { CrumbBar } from '../shell/TopBar';
import { buttonClass } from '../ui/Button';
import { Icon } from '../ui/Icon';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Tabs } from '../ui/Tabs';
import { AgentHead } from './AgentHead';
import { AgentOverview } from './AgentOverview';
import { AgentRuns } from './AgentRuns';
import { AgentVersions } from './AgentVersions';
import { agentQuery } from './queries';
import { strings } from './strings';

const route = getRouteApi('/$account/agents/$name');
const TABS = ['overview', 'versions', 'runs'] as const;
type TabName = (typeof TABS)[number];

export function AgentScreen() {
  const { account, name } = route.useParams();
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: detail, error } = useQuery(agentQuery(name));
  // The catalog is often there already, and has enough for the head of the page.
  const { data: catalog } = useQuery(agentsQuery);
  const agent = detail ?? catalog?.find((each) => each.name === name);
  const selected: TabName = TABS.find((each) => each === tab) ?? 'overview';
  return (
    <main className="main" id="main">
      <CrumbBar
        to="/$account/agents"
        parent={strings.agents}
        here={<SafeText>{agent?.displayName ?? name}</SafeText>}
      >
        {agent && !agent.locked && (
          <Link
            className={buttonClass({ look: 'primary' })}
            to="/$account/new"
            params={{ account }}
            search={{ agent: agent.name }}
          >
            <Icon name="plus" />
            <span className="not-phone">{strings.newTask}</span>
            <span className="only-phone">{strings.newTaskShort}</span>
          </Link>
        )}
      </CrumbBar>
      <div className="page page-narrow stack-6">
        {error && !detail && (
          <ErrorNotice
            error={error}
            actions={
              <Link className={buttonClass({})} to="/$account/agents" params={{ account }}>
                {strings.allAgents}
              </Link>
            }
          />
        )}
        {!agent && !error && <Loading />}
        {agent && <AgentHead agent={agent} />}
        {detail && (
          <Tabs
            label={strings.about}
            tabs={TABS.map((each) => ({ name: each, label: strings.tabs[each] }))}
            selected={selected}
            onSelect={(next) =>
              navigate({ search: next === 'overview' ? {} : { tab: next }, replace: true })
            }
          >
            <div className="agent-panel">
              {selected === 'overview' && <AgentOverview agent={detail} />}
              {selected === 'versions' && <AgentVersions name={name} />}
              {selected === 'runs' && <AgentRuns name={name} />}
            </div>
          </Tabs>
        )}
      </div>
    </main>
  );
}
