import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { keys } from '../api/keys';
import { useAccount } from '../shell/account';
import { Button } from '../ui/Button';
import { Notice } from '../ui/Notice';
import { toast } from '../ui/toast';
import { forgetPayment, type PendingPayment, pendingPayment } from './pending';
import { paymentStateQuery } from './queries';
import { strings } from './strings';

const route = getRouteApi('/$account/money');
const LATE_MS = 60_000;
const CHECK_MS = 2_000;

/** Back from the payment page: says what happened, and shows the money when it arrives. */
export function PaymentArrival() {
  const { checkout } = route.useSearch();
  const navigate = route.useNavigate();
  const cache = useQueryClient();
  const account = useAccount();
  const [pending] = useState(pendingPayment);
  const ours = pending?.account === account ? pending : null;
  const waits = checkout === 'done' && ours !== null;

  useEffect(() => {
    if (!checkout) return;
    if (checkout === 'done') {
      toast(strings.paid);
      cache.invalidateQueries({ queryKey: keys.money });
      cache.invalidateQueries({ queryKey: keys.plan });
    } else {
      toast(strings.nothingCharged);
    }
    if (waits) return;
    forgetPayment();
    navigate({ search: ({ kind, by }) => ({ kind, by }), replace: true });
  }, [checkout, waits, cache, navigate]);

  if (!waits) return null;
  return (
    <Waiting
      payment={ours}
      onEnd={() => {
        forgetPayment();
        navigate({ search: ({ kind, by }) => ({ kind, by }), replace: true });
      }}
    />
  );
}

function Waiting({ payment, onEnd }: { payment: PendingPayment; onEnd: () => void }) {
  const cache = useQueryClient();
  const [late, setLate] = useState(false);
  // The event stream says when it arrives. Asking as well covers a stream that is interrupted.
  const { data } = useQuery({
    ...paymentStateQuery(payment.kind),
    staleTime: 0,
    refetchInterval: late ? false : CHECK_MS,
  });
  const arrived = data !== undefined && data !== payment.before;
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), LATE_MS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    if (!arrived) return;
    for (const queryKey of [keys.money, keys.plan, keys.me, keys.agents]) {
      cache.invalidateQueries({ queryKey });
    }
    toast(strings.arrived[payment.kind]);
    onEnd();
  }, [arrived, cache, payment.kind, onEnd]);
  return (
    <div role="status">
      <Notice
        tone="accent"
        actions={
          late && (
            <Button size="s" onClick={onEnd}>
              {strings.dismiss}
            </Button>
          )
        }
      >
        {late ? strings.paymentLate : strings.paymentWaits[payment.kind]}
      </Notice>
    </div>
  );
}
