import type { Agent } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { Cents, Money } from '../ui/Money';
import { SafeText } from '../ui/SafeText';
import { asksBefore, byServer } from './approval';
import { LockLink } from './LockLink';
import { spentQuery } from './queries';
import type { Section } from './selection';
import { rankName, strings } from './strings';

/** Sections with a name get a heading. A section without one is the result of a search. */
export function AgentTable({ sections, stale }: { sections: Section[]; stale: boolean }) {
  return (
    <table className="table table-agents" aria-busy={stale}>
      <thead>
        <tr>
          <th scope="col">{strings.columns.agent}</th>
          <th scope="col">{strings.columns.canUse}</th>
          <th scope="col">{strings.columns.asks}</th>
          <th scope="col" className="end">
            {strings.columns.atMost}
          </th>
          <th scope="col" className="end">
            {strings.columns.spent}
          </th>
        </tr>
      </thead>
      {sections.map(({ department, agents }) => (
        <tbody key={department}>
          <tr className="group">
            <th colSpan={5} scope="rowgroup">
              <span className="strong">
                {department ? <SafeText>{department}</SafeText> : strings.found}
              </span>{' '}
              <span className="faint">
                {strings.group(agents.length, agents.filter((agent) => agent.locked).length)}
              </span>
            </th>
          </tr>
          {agents.map((agent) => (
            <AgentRow key={agent.name} agent={agent} placed={department !== ''} />
          ))}
        </tbody>
      ))}
    </table>
  );
}

function AgentRow({ agent, placed }: { agent: Agent; placed: boolean }) {
  const account = useAccount();
  const { data: spent } = useQuery(spentQuery);
  const cost = spent?.[agent.name];
  return (
    <tr className={agent.locked ? 'is-locked' : undefined}>
      <td>
        <div className="row row-agent">
          <AgentMark initials={agent.initials} rank={agent.tier} />
          <div className="clip-box">
            <p>
              <Link
                className="strong name"
                to="/$account/agents/$name"
                params={{ account, name: agent.name }}
              >
                <SafeText>{agent.displayName}</SafeText>
              </Link>{' '}
              <span className="faint tiny">
                {rankName(agent.tier)}
                {!placed && `, ${agent.department}`}
              </span>
            </p>
            <p className="small soft two">
              <SafeText>{agent.description}</SafeText>
            </p>
          </div>
        </div>
      </td>
      <td data-l={strings.columns.canUse}>
        <span className="row row-wrap tight">
          {byServer(agent.tools).map(({ server, tools }) => (
            <Badge key={server} tone="line">
              <SafeText>{server}</SafeText> <b>{tools.length}</b>
            </Badge>
          ))}
          {!agent.tools.length && <span className="faint">{strings.withoutTools}</span>}
        </span>
      </td>
      <td className="soft" data-l={strings.columns.asks}>
        <SafeText>{asksBefore(agent.approval, agent.tools)}</SafeText>
      </td>
      <td className="end" data-l={strings.columns.atMost}>
        <Cents value={agent.budgetCents} />
      </td>
      <td className="end" data-l={agent.locked ? undefined : strings.columns.spent}>
        {agent.locked ? (
          <LockLink tier={agent.requiredTier} />
        ) : (
          spent && (
            <span className={cost ? undefined : 'faint'}>
              <Money usd={cost ?? 0} fine />
            </span>
          )
        )}
      </td>
    </tr>
  );
}
