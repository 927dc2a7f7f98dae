import type { Webhook, WebhookState } from '@rota/sdk';
import { CountedTable } from '../settings/CountedTable';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { SafeText } from '../ui/SafeText';
import { Ago } from '../ui/Time';
import { strings } from './strings';

const tones = { active: 'good', failing: 'wait', disabled: 'bad' } as const satisfies Record<
  WebhookState,
  string
>;

export function StateBadge({ state }: { state: WebhookState }) {
  return (
    <Badge tone={tones[state]} icon={state === 'active' ? 'check' : 'alert'}>
      {strings.states[state]}
    </Badge>
  );
}

export function WebhookTable({
  webhooks,
  onOpen,
}: {
  webhooks: Webhook[];
  onOpen: (webhook: Webhook) => void;
}) {
  return (
    <CountedTable
      id="webhooks"
      title={strings.active}
      count={webhooks.length}
      none={strings.none}
      columns={[strings.url, strings.state, strings.lastDelivered]}
      action={strings.action}
    >
      {webhooks.map((webhook) => (
        <tr key={webhook.id}>
          <td>
            <p className="strong">
              <SafeText>{webhook.url}</SafeText>
            </p>
            <p className="small soft">
              <SafeText>{webhook.description ?? ''}</SafeText>{' '}
              <span className="mono faint tiny">{webhook.events?.join(', ') ?? strings.all}</span>
            </p>
          </td>
          <td>
            <StateBadge state={webhook.state} />
          </td>
          <td className="soft">
            {webhook.lastDeliveredAt ? <Ago at={webhook.lastDeliveredAt} /> : strings.never}
          </td>
          <td className="act end">
            <Button size="s" onClick={() => onOpen(webhook)}>
              {strings.open}
              <span className="sr"> {webhook.url}</span>
            </Button>
          </td>
        </tr>
      ))}
    </CountedTable>
  );
}
