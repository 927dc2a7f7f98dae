import type { Delivery } from '@rota/sdk';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { exact } from '../ui/format';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

/** What was sent, and what the endpoint responded. Both are text of others. */
export function DeliveryDialog({ delivery, onClose }: { delivery: Delivery; onClose: () => void }) {
  const { request, response, error } = delivery;
  return (
    <Dialog
      title={strings.deliveryOf(delivery.type)}
      onClose={onClose}
      onSubmit={onClose}
      actions={
        <Button type="submit" look="primary">
          {strings.close}
        </Button>
      }
    >
      <p className="small soft">
        <time dateTime={delivery.sentAt}>{exact(delivery.sentAt)}</time>,{' '}
        {strings.took(delivery.durationMs)}
      </p>
      {error && (
        <p className="error">
          <SafeText>{error}</SafeText>
        </p>
      )}
      <h3>{strings.request}</h3>
      <p className="small">
        <code>
          <SafeText>{`POST ${request.url}`}</SafeText>
        </code>
      </p>
      <p className="webhook-body">
        <code>
          <SafeText>{request.body}</SafeText>
        </code>
      </p>
      <h3>{response ? `${strings.response} ${response.status}` : strings.noResponse}</h3>
      {response?.body && (
        <p className="webhook-body">
          <code>
            <SafeText>{response.body}</SafeText>
          </code>
        </p>
      )}
    </Dialog>
  );
}
