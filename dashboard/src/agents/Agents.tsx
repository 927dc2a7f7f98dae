import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { agentsQuery } from '../api/queries';
import { TopBar } from '../shell/TopBar';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { useWide } from '../ui/wide';
import { AgentFilters } from './AgentFilters';
import { AgentSearch } from './AgentSearch';
import { AgentTable } from './AgentTable';
import { searchQuery } from './queries';
import { sections, select } from './selection';
import { strings } from './strings';

const route = getRouteApi('/$account/agents');

export function Agents() {
  const { q = '', ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const wide = useWide();
  const catalog = useQuery(agentsQuery);
  const found = useQuery(searchQuery(q.trim()));
  const searching = q.trim() !== '';
  const { data, error } = searching ? found : catalog;
  const agents = data && select(data, filters);
  return (
    <main className="main" id="main">
      <TopBar title={strings.agents}>
        {agents && <Badge>{agents.length}</Badge>}
        {wide && (
          <span className="row push search-w">
            <AgentSearch />
          </span>
        )}
      </TopBar>
      <AgentFilters departments={sections(catalog.data ?? []).map((each) => each.department)}>
        {!wide && <AgentSearch />}
      </AgentFilters>
      {error && !data && (
        <div className="page">
          <ErrorNotice error={error} />
        </div>
      )}
      {!data && !error && <Loading />}
      {agents?.length === 0 && (
        <Empty title={strings.noMatch}>
          <p>{strings.noMatchHint}</p>
          <Button onClick={() => navigate({ search: {} })}>{strings.clear}</Button>
        </Empty>
      )}
      {agents && agents.length > 0 && (
        <AgentTable
          sections={searching ? [{ department: '', agents }] : sections(agents)}
          stale={searching && found.isPlaceholderData}
        />
      )}
    </main>
  );
}
