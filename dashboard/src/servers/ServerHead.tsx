import type { ToolServer } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Button } from '../ui/Button';
import { Facts } from '../ui/Facts';
import { count, duration } from '../ui/format';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago, Day } from '../ui/Time';
import { waitsForAcceptance } from './definition';
import { checksQuery, toolsQuery } from './queries';
import { ServerState } from './ServerState';
import { strings } from './strings';

const { facts: words } = strings;

export function ServerHead({ server, onEdit }: { server: ToolServer; onEdit: () => void }) {
  const { data: checks } = useQuery(checksQuery(server.id));
  const { data: tools } = useQuery(toolsQuery(server.id));
  const latency = checks?.checks.find((check) => check.latencyMs !== null)?.latencyMs;
  const allowed = tools?.tools.filter((tool) => tool.allowed).length;
  const blocked = tools?.tools.filter(waitsForAcceptance).length ?? 0;
  return (
    <>
      <div className="server-head">
        <div className="stack">
          <ServerState status={server.status} now />
          <h1 className="review-title review-title-l">
            <SafeText>{server.name}</SafeText>
          </h1>
          <p className="small soft">
            <code>
              <SafeText>{server.url}</SafeText>
            </code>
          </p>
          <p className="small faint">{strings.form.transports[server.transport]}</p>
        </div>
        <Facts
          className="facts-task"
          facts={[
            { name: words.checked, value: <Ago at={server.lastCheckedAt} /> },
            {
              name: words.latency,
              value: latency == null ? words.none : duration(latency),
            },
            {
              name: words.tools,
              value: count(server.toolCount),
              note:
                blocked > 0
                  ? words.blocked(blocked)
                  : server.allowedTools === null
                    ? words.allAllowed
                    : allowed !== undefined && words.allowed(allowed),
            },
            {
              name: words.revision,
              value: server.revision,
              note: (
                <>
                  {words.connected} <Day at={server.createdAt} />
                </>
              ),
            },
          ]}
        />
      </div>
      {(server.status === 'UNREACHABLE' || server.status === 'AUTH_FAILED') && (
        <Notice
          tone="bad"
          title={strings.problem[server.status]}
          actions={
            server.status === 'AUTH_FAILED' && (
              <Button onClick={onEdit}>{strings.changeCredentials}</Button>
            )
          }
        >
          {server.lastError && (
            <p>
              <SafeText>{server.lastError}</SafeText>
            </p>
          )}
          <p className="small soft">{strings.problemHint}</p>
        </Notice>
      )}
    </>
  );
}
