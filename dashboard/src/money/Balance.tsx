import type { BalanceResponse } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { partsOf } from '../api/balance';
import { balanceQuery, meQuery } from '../api/queries';
import { Button } from '../ui/Button';
import { cents } from '../ui/format';
import { Loading } from '../ui/Loading';
import { Cents, Meter } from '../ui/Money';
import { ErrorNotice, Notice } from '../ui/Notice';
import { BalanceSettings } from './BalanceSettings';
import { ForecastNote } from './ForecastNote';
import { OnDay } from './OnDay';
import { strings } from './strings';
import { TopUpDialog } from './TopUpDialog';
import { useTakesPayments } from './useTakesPayments';

/** What is available, how it is made up, and how long it lasts. */
export function Balance() {
  const id = useId();
  const { data, error } = useQuery(balanceQuery);
  const { data: me } = useQuery(meQuery);
  const takesPayments = useTakesPayments();
  const [topUp, setTopUp] = useState(false);
  const mayPay = me !== undefined && me.account.role !== 'member';
  return (
    <section className="card balance" aria-labelledby={id}>
      <div className="card-pad stack-6">
        <div className="row row-wrap balance-row">
          <div>
            <h2 className="small soft regular" id={id}>
              {strings.availableNow}
            </h2>
            <p className="money-big money">{data ? cents(data.totalAvailable) : ' '}</p>
          </div>
          {mayPay && takesPayments && (
            <span className="row push">
              <Button look="primary" icon="plus" onClick={() => setTopUp(true)}>
                {strings.topUp}
              </Button>
            </span>
          )}
        </div>
        {error && <ErrorNotice error={error} />}
        {!data && !error && <Loading />}
        {data && <MadeOf balance={data} />}
        {takesPayments === false && <p className="small soft">{strings.creditByOperator}</p>}
        {data && (
          <div className="stack">
            {data.hasAllowance && <Allowance balance={data} />}
            <ForecastNote balance={data} />
          </div>
        )}
      </div>
      {data && <BalanceSettings balance={data} mayChange={mayPay} />}
      {topUp && data && <TopUpDialog balance={data} onClose={() => setTopUp(false)} />}
    </section>
  );
}

function MadeOf({ balance }: { balance: BalanceResponse }) {
  const { hasAllowance, owedCents } = balance;
  const { allowance, earlier, topUp, held } = partsOf(balance);
  const parts = [
    ...(hasAllowance ? [{ name: strings.allowanceLeft, value: allowance }] : []),
    ...(earlier ? [{ name: strings.earlierMonth, value: earlier }] : []),
    { name: strings.topUpBalance, value: topUp },
    { name: strings.heldByTasks, value: held, minus: true },
  ];
  return (
    <div className="stack">
      <dl className="sum">
        {parts.map(({ name, value, minus }, at) => (
          <div key={name} data-sign={minus ? '−' : at ? '+' : undefined}>
            <dt>{name}</dt>
            <dd>
              <Cents value={value} />
            </dd>
          </div>
        ))}
      </dl>
      {owedCents ? (
        <Notice tone="wait" title={strings.owed(cents(owedCents))}>
          {strings.owedHint}
        </Notice>
      ) : null}
    </div>
  );
}

function Allowance({ balance }: { balance: BalanceResponse }) {
  const { used, total, remaining, percent, resetsAt } = balance.usageBar;
  // Runs hold the allowance before the top-up.
  const held = Math.min(partsOf(balance).held, remaining);
  const heldPercent = total > 0 ? Math.round((held / total) * 100) : 0;
  return (
    <>
      <Meter
        large
        used={used}
        held={held}
        total={total}
        label={strings.allowanceMeter(percent, heldPercent)}
      />
      <p className="row small row-wrap meter-note">
        <span>
          <span className="strong">
            <Cents value={used} />
          </span>{' '}
          <span className="soft">{strings.ofAllowance(cents(total))}</span>
        </span>
        {resetsAt && (
          <span className="soft push">
            {strings.resetsOn} <OnDay at={resetsAt} />
          </span>
        )}
      </p>
    </>
  );
}
