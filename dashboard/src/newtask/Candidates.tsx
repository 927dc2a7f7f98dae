import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { needsCompany } from '../agents/tiers';
import { meQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Badge } from '../ui/Badge';
import { cents } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';
import type { CandidateList, Choice } from './useCandidates';

function Candidate({
  choice: { agent },
  best,
  chosen,
  onChoose,
}: {
  choice: Choice;
  best: boolean;
  chosen: boolean;
  onChoose: () => void;
}) {
  const account = useAccount();
  const kind = useQuery(meQuery).data?.account.kind;
  return (
    <label className={agent.locked ? 'cand cand-locked' : 'cand'}>
      <input
        type="radio"
        name="agent"
        checked={chosen}
        disabled={agent.locked}
        onChange={onChoose}
      />
      <AgentMark initials={agent.initials} rank={agent.tier} />
      <span className="stack-0">
        <span className="row row-wrap tight">
          <span className="strong">
            <SafeText>{agent.displayName}</SafeText>
          </span>
          {agent.locked && (
            <>
              <Badge icon="lock">{strings.needs(agent.requiredTier)}</Badge>
              {!needsCompany(agent.requiredTier, kind) && (
                <Link className="link small" to="/$account/money" params={{ account }} hash="plan">
                  {strings.seePlans}
                </Link>
              )}
            </>
          )}
        </span>
        <span className="small soft">
          <SafeText>{agent.description}</SafeText>
        </span>
      </span>
      <span className="cand-num small">
        <span className="money">{strings.atMost(cents(agent.budgetCents))}</span>
        {best && <span className="faint tiny">{strings.best}</span>}
      </span>
    </label>
  );
}

export function Candidates({
  candidates,
  onChoose,
}: {
  candidates: CandidateList;
  onChoose: (name: string) => void;
}) {
  const account = useAccount();
  const { choices, kind, chosen, total, loading, error } = candidates;
  // The service sorts, and names only agents that fit well. An agent of the URL has no score.
  const best = choices.find(({ score }) => score !== null);
  return (
    <fieldset aria-busy={loading || undefined}>
      <legend className="section-head section-legend">
        <span className="strong">{strings.who}</span>{' '}
        <span className="small faint">{strings.asYouType}</span>
      </legend>
      {error ? <ErrorNotice error={error} /> : null}
      <p className="small soft cand-note" role="status">
        {kind === 'none' && strings.noFit}
        {kind === 'all' && strings.chooseFirst}
      </p>
      {choices.length > 0 && (
        <div className={kind === 'found' ? 'cands' : 'cands cands-all'}>
          {choices.map((choice) => (
            <Candidate
              key={choice.agent.name}
              choice={choice}
              best={choice === best}
              chosen={choice.agent.name === chosen}
              onChoose={() => onChoose(choice.agent.name)}
            />
          ))}
        </div>
      )}
      {kind === 'found' && total > 0 && (
        <p className="small soft cand-more">
          <Link className="link" to="/$account/agents" params={{ account }}>
            {strings.seeAll(total)}
          </Link>
        </p>
      )}
    </fieldset>
  );
}
