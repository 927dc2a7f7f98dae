import type { Hold } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useId, useState } from 'react';
import { partsOf } from '../api/balance';
import { balanceQuery } from '../api/queries';
import { useAccount } from '../shell/account';
import { AgentMark } from '../ui/AgentMark';
import { Button } from '../ui/Button';
import { usd } from '../ui/format';
import { Loading } from '../ui/Loading';
import { Cents, Money } from '../ui/Money';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Status } from '../ui/Status';
import { useAgentFaces } from './names';
import { holdsQuery } from './queries';
import { strings } from './strings';

const FEW = 6;
const MANY = 100;

/** Which tasks hold money, the largest hold first. */
export function Holds() {
  const id = useId();
  const [limit, setLimit] = useState(FEW);
  const { data, error } = useQuery(holdsQuery(limit));
  // The same cents as beside it, where they add up to what is available.
  const { data: balance } = useQuery(balanceQuery);
  return (
    <section className="card" aria-labelledby={id}>
      <div className="card-head">
        <h2 id={id}>{data ? strings.heldBy(data.total) : strings.held}</h2>
        {data && data.total > 0 && (
          <span className="strong push">
            {balance ? <Cents value={partsOf(balance).held} /> : <Money usd={data.heldUsd} />}
          </span>
        )}
      </div>
      {error && (
        <div className="card-pad">
          <ErrorNotice error={error} />
        </div>
      )}
      {!data && !error && <Loading />}
      {data?.total === 0 && <p className="card-pad small soft">{strings.nothingHeld}</p>}
      {data && data.total > 0 && (
        <ul className="holds">
          {data.holds.map((hold) => (
            <HoldItem key={hold.taskId} hold={hold} />
          ))}
        </ul>
      )}
      {data && data.total > data.holds.length && (
        <div className="holds-more">
          {limit === FEW ? (
            <Button look="quiet" size="s" onClick={() => setLimit(MANY)}>
              {strings.showHolds(data.total)}
            </Button>
          ) : (
            <p className="tiny faint">{strings.largestHolds(data.holds.length)}</p>
          )}
        </div>
      )}
    </section>
  );
}

function HoldItem({ hold }: { hold: Hold }) {
  const account = useAccount();
  const agent = useAgentFaces()(hold.agent ?? '?');
  const used = Number(hold.usedUsd);
  return (
    <li className="hold">
      <AgentMark initials={agent.initials} rank={agent.rank} size="s" />
      <div className="clip-box">
        <p className="clip">
          <Link className="strong" to="/$account/tasks/$id" params={{ account, id: hold.taskId }}>
            <SafeText>{hold.taskName}</SafeText>
          </Link>
        </p>
        {hold.agent && (
          <p className="tiny faint clip">
            <SafeText>{agent.name}</SafeText>
          </p>
        )}
      </div>
      <Status status={hold.status} bare />
      <div className="hold-num">
        <p className="num strong" title={`$${hold.heldUsd}`}>
          <Money usd={hold.heldUsd} />
        </p>
        <p className="tiny faint num">{strings.used(used ? usd(used, 4) : null)}</p>
      </div>
    </li>
  );
}
