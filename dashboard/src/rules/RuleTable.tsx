import type { Rule } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { agentsQuery, serversQuery } from '../api/queries';
import { agentOf } from '../review/people';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { SafeText } from '../ui/SafeText';
import { Day } from '../ui/Time';
import { wordsOf } from './conditions';
import { strings } from './strings';

export function RuleTable({
  rules,
  canRevoke,
  onRevoke,
}: {
  rules: Rule[];
  canRevoke: boolean;
  onRevoke: (rule: Rule) => void;
}) {
  return (
    <table className="table table-keys table-rules" aria-labelledby="rules">
      <thead>
        <tr>
          <th scope="col">{strings.tool}</th>
          <th scope="col">{strings.conditions}</th>
          <th scope="col">{strings.used}</th>
          <th scope="col">{strings.ends}</th>
          <th scope="col">{strings.madeBy}</th>
          <th scope="col">
            <span className="sr">{strings.action}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rules.map((rule) => (
          <Row key={rule.id} rule={rule} canRevoke={canRevoke} onRevoke={() => onRevoke(rule)} />
        ))}
      </tbody>
    </table>
  );
}

function Row({
  rule,
  canRevoke,
  onRevoke,
}: {
  rule: Rule;
  canRevoke: boolean;
  onRevoke: () => void;
}) {
  const agent = agentOf(useQuery(agentsQuery).data, rule.agent).displayName;
  const servers = useQuery(serversQuery).data?.servers;
  const server = servers?.find(({ id }) => id === rule.serverId)?.name ?? strings.disconnected;
  const works = rule.state === 'active';
  return (
    <tr>
      <td>
        <p className="row row-wrap tight">
          <code className="strong">
            <SafeText>{rule.tool}</SafeText>
          </code>
          <Badge tone={works ? 'good' : 'line'}>{strings.states[rule.state]}</Badge>
        </p>
        <p className="tiny faint">
          <SafeText>{`${server} · ${strings.by(agent)}`}</SafeText>
        </p>
        {rule.voidReason && <p className="tiny soft">{rule.voidReason}</p>}
      </td>
      <td data-l={strings.conditions}>
        <Conditions rule={rule} />
      </td>
      <td className="soft num" data-l={strings.used}>
        {strings.uses(rule.uses, rule.maxUses)}
      </td>
      <td className="soft" data-l={strings.ends}>
        <Day at={rule.expiresAt} />
      </td>
      <td className="soft" data-l={strings.madeBy}>
        <SafeText>{rule.createdByName ?? strings.someone}</SafeText>
      </td>
      <td className="act end">
        {canRevoke && rule.state !== 'revoked' && (
          <Button size="s" look="danger" onClick={onRevoke}>
            {strings.revoke}
            <span className="sr"> {rule.tool}</span>
          </Button>
        )}
      </td>
    </tr>
  );
}

function Conditions({ rule }: { rule: Rule }) {
  const conditions = Object.entries(rule.arguments);
  if (!conditions.length) return <span className="soft">{strings.noArguments}</span>;
  return (
    <ul className="small conditions">
      {conditions.map(([name, condition]) => (
        <li key={name}>
          <code>
            <SafeText>{name}</SafeText>
          </code>{' '}
          <SafeText>{wordsOf(condition)}</SafeText>
        </li>
      ))}
    </ul>
  );
}
