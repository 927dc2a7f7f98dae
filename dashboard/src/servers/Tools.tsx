import type { ToolServer } from '@rota/sdk';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../api/client';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { SearchBox } from '../ui/Field';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { allowedAfter } from './definition';
import { showChange, toolsQuery } from './queries';
import { strings } from './strings';
import { ToolItem } from './ToolItem';

const { tools: words } = strings;
const PAGE = 40;
const FILTER_FROM = 10;

export function Tools({ server }: { server: ToolServer }) {
  const { data, error } = useQuery(toolsQuery(server.id));
  const [filter, setFilter] = useState('');
  const [shown, setShown] = useState(PAGE);
  const allow = useAllow(server.id);
  const tools = data?.tools ?? [];
  const matching = tools.filter((tool) =>
    `${tool.name} ${tool.title ?? ''}`.toLowerCase().includes(filter.trim().toLowerCase()),
  );
  return (
    <section className="card" aria-labelledby="tools" aria-busy={allow.isPending || undefined}>
      <div className="card-head tools-head">
        <h2 id="tools">{words.title}</h2>
        {data && <Badge>{data.total}</Badge>}
        {tools.length > FILTER_FROM && (
          <span className="push search-w">
            <SearchBox
              label={words.filter}
              value={filter}
              onChange={(event) => setFilter(event.target.value)}
            />
          </span>
        )}
      </div>
      {server.allowedTools !== null && (
        <div className="tools-note small soft">
          <p>
            {words.some}{' '}
            {server.missingTools.length > 0 && (
              <SafeText>{words.missing(server.missingTools.join(', '))}</SafeText>
            )}
          </p>
          <Button size="s" disabled={allow.isPending} onClick={() => allow.mutate(null)}>
            {words.allowAll}
          </Button>
        </div>
      )}
      {error && !data && <ErrorNotice error={error} />}
      {allow.error && <ErrorNotice error={allow.error} />}
      {!data && !error && <Loading>{words.loading}</Loading>}
      {data && matching.length === 0 && (
        <p className="card-pad-s small soft">{tools.length ? words.noMatch : words.none}</p>
      )}
      <ul className="tool-list">
        {matching.slice(0, shown).map((tool) => (
          <ToolItem
            key={tool.name}
            tool={tool}
            busy={allow.isPending}
            onAllow={(on) => allow.mutate(allowedAfter(server, tools, tool.name, on))}
          />
        ))}
      </ul>
      {matching.length > shown && (
        <div className="card-foot">
          <Button size="s" onClick={() => setShown(shown + PAGE)}>
            {words.more(Math.min(PAGE, matching.length - shown))}
          </Button>
        </div>
      )}
    </section>
  );
}

/** Sets the tools that can be used. Null means all, also those that the server adds later. */
function useAllow(id: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (allowedTools: string[] | null) => api.toolServers.update(id, { allowedTools }),
    onSuccess: (answer) => showChange(cache, id, answer),
  });
}
