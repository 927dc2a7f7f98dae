import type { BalanceResponse } from '@rota/sdk';
import { useState } from 'react';
import { api } from '../api/client';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { Field, Input } from '../ui/Field';
import { cents } from '../ui/format';
import { ErrorNotice } from '../ui/Notice';
import { Segments } from '../ui/Tabs';
import { parseDollars, typedDollars } from './amounts';
import { useCheckout } from './checkout';
import { strings } from './strings';

const LEAST_CENTS = 500;
const MOST_CENTS = 100_000;
const presets = ['5', '20', '50', '100', '500'].map((name) => ({ name, label: `$${name}` }));

export function TopUpDialog({
  balance,
  onClose,
}: {
  balance: BalanceResponse;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState('20');
  const [tried, setTried] = useState(false);
  const checkout = useCheckout('topUp');
  const amount = parseDollars(typed);
  const valid = amount !== null && amount >= LEAST_CENTS && amount <= MOST_CENTS;
  const pay = () => {
    setTried(true);
    if (!valid || checkout.isPending) return;
    checkout.mutate({
      request: String(amount),
      create: async (key) => {
        const body = { amountCents: amount };
        return (await api.credits.topUp(body, { idempotencyKey: key })).checkoutUrl;
      },
    });
  };
  const owed = balance.owedCents ?? 0;
  return (
    <Dialog
      title={strings.topUp}
      onClose={onClose}
      onSubmit={pay}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="primary" type="submit" busy={checkout.isPending}>
            {valid ? strings.pay(cents(amount)) : strings.payNothing}
          </Button>
        </>
      }
    >
      <Segments
        label={strings.presets}
        options={presets}
        selected={valid ? typedDollars(amount) : ''}
        onSelect={setTyped}
      />
      <Field
        label={strings.dollars}
        kind={strings.topUpRange}
        error={tried && !valid ? strings.topUpInvalid : undefined}
      >
        {(control) => (
          <Input
            {...control}
            inputMode="decimal"
            autoComplete="off"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
          />
        )}
      </Field>
      <p className="small soft">
        {valid && strings.availableThen(cents(balance.totalAvailable + Math.max(0, amount - owed)))}{' '}
        {owed > 0 && strings.owedFirst(cents(owed))} {strings.payElsewhere}
      </p>
      {checkout.error && <ErrorNotice error={checkout.error} />}
    </Dialog>
  );
}
