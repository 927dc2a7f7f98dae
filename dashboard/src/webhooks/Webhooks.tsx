import type { WebhookSecretResponse } from '@rota/sdk';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { FreshSecret } from '../settings/FreshSecret';
import { SectionHead } from '../settings/SectionHead';
import { Button } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice } from '../ui/Notice';
import { CreateWebhookDialog } from './CreateWebhookDialog';
import { webhooksQuery } from './data';
import { strings } from './strings';
import { WebhookPage } from './WebhookPage';
import { WebhookTable } from './WebhookTable';
import './webhooks.css';

const route = getRouteApi('/$account/settings/$section');

/** The endpoints that receive events, or one of them with its deliveries. */
export function Webhooks() {
  const { webhook: id } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error } = useQuery(webhooksQuery);
  const [creating, setCreating] = useState(false);
  // The secret is only here, never in the cache: it goes when the page goes.
  const [fresh, setFresh] = useState<WebhookSecretResponse | null>(null);
  const show = (webhook?: string) => navigate({ search: { webhook } });
  const shown = data?.webhooks.find((each) => each.id === id);
  const secret = fresh && (
    <FreshSecret
      secret={fresh.secret}
      title={strings.ready}
      words={strings}
      onStored={() => setFresh(null)}
    >
      {strings.copyNow} {strings.webhookId}: <code>{fresh.webhook.id}</code>
    </FreshSecret>
  );
  if (shown) {
    return (
      <WebhookPage
        key={shown.id}
        webhook={shown}
        secret={secret}
        onSecret={setFresh}
        onBack={() => show()}
      />
    );
  }
  return (
    <>
      <SectionHead title={strings.name} hint={strings.hint}>
        {!error && (
          <Button
            look="primary"
            icon="plus"
            // Another secret would take the place of this one.
            disabled={fresh !== null}
            onClick={() => setCreating(true)}
          >
            {strings.create}
          </Button>
        )}
      </SectionHead>
      {secret}
      {error && <ErrorNotice error={error} />}
      {!data && !error && <Loading />}
      {data && <WebhookTable webhooks={data.webhooks} onOpen={(each) => show(each.id)} />}
      {creating && (
        <CreateWebhookDialog
          onClose={() => setCreating(false)}
          onCreated={(created) => {
            setCreating(false);
            setFresh(created);
          }}
        />
      )}
    </>
  );
}
