import type { Delivery, DeliveryOutcome, Webhook } from '@rota/sdk';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { Select } from '../ui/Field';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { DeliveryDialog } from './DeliveryDialog';
import { deliveriesQuery } from './data';
import { strings } from './strings';

/** What was sent to a webhook, newest first. */
export function Deliveries({ webhook }: { webhook: Webhook }) {
  const [outcome, setOutcome] = useState<DeliveryOutcome | ''>('');
  const [opened, setOpened] = useState<Delivery | null>(null);
  const found = useInfiniteQuery(deliveriesQuery(webhook.id, outcome || undefined));
  const all = found.data?.pages.flatMap((page) => page.deliveries) ?? [];
  // A new attempt moves the others to later pages while they are read.
  const deliveries = [...new Map(all.map((each) => [each.id, each])).values()];
  return (
    <section className="card" aria-labelledby="deliveries">
      <div className="card-head row-wrap">
        <h3 id="deliveries">{strings.deliveries}</h3>
        <span className="push">
          <Select
            aria-label={strings.only}
            value={outcome}
            onChange={(event) => setOutcome(event.target.value as DeliveryOutcome | '')}
          >
            {Object.entries(strings.outcomes).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </Select>
        </span>
      </div>
      {found.error && <ErrorNotice error={found.error} />}
      {!found.data && !found.error && <Loading />}
      {found.data && deliveries.length === 0 && (
        <p className="card-pad soft">{strings.noDeliveries}</p>
      )}
      {deliveries.length > 0 && <Table deliveries={deliveries} onOpen={setOpened} />}
      <div className="card-foot small soft row">
        <span>
          {strings.shownOf(deliveries.length, found.data?.pages.at(-1)?.total ?? 0)}.{' '}
          {strings.deliveriesHint}
        </span>
        {found.hasNextPage && (
          <Button
            size="s"
            className="push"
            busy={found.isFetchingNextPage}
            onClick={() => found.fetchNextPage()}
          >
            {strings.more}
          </Button>
        )}
      </div>
      {opened && <DeliveryDialog delivery={opened} onClose={() => setOpened(null)} />}
    </section>
  );
}

function Table({
  deliveries,
  onOpen,
}: {
  deliveries: Delivery[];
  onOpen: (delivery: Delivery) => void;
}) {
  return (
    <table className="table table-webhooks" aria-labelledby="deliveries">
      <thead>
        <tr>
          <th scope="col">{strings.event}</th>
          <th scope="col">{strings.outcome}</th>
          <th scope="col">{strings.sent}</th>
          <th scope="col">
            <span className="sr">{strings.action}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {deliveries.map((each) => (
          <tr key={each.id}>
            <td>
              <p className="strong">{each.type}</p>
              <p className="small soft num">
                #{each.sequence}, {strings.attempt(each.attempt)}
              </p>
            </td>
            <td>
              <Badge tone={each.delivered ? 'good' : 'bad'} icon={each.delivered ? 'check' : 'x'}>
                {each.delivered ? strings.delivered : strings.failed}
              </Badge>
              {each.error && (
                <p className="small soft">
                  <SafeText>{each.error}</SafeText>
                </p>
              )}
            </td>
            <td className="soft">
              <Ago at={each.sentAt} />
            </td>
            <td className="act end">
              <Button size="s" onClick={() => onOpen(each)}>
                {strings.details}
                <span className="sr">
                  {' '}
                  {each.type} {each.sequence}, {strings.attempt(each.attempt)}
                </span>
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
