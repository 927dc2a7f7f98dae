import type { WebhookSecretResponse } from '@rota/sdk';
import { useEffect, useRef } from 'react';
import { ConfirmLeave } from '../shell/ConfirmLeave';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { Notice } from '../ui/Notice';
import { strings } from './strings';

/** The secret of a webhook. It can be seen until a person says that it is stored. */
export function FreshSecret({
  created: { webhook, secret },
  onStored,
}: {
  created: WebhookSecretResponse;
  onStored: () => void;
}) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => card.current?.focus(), []);
  return (
    <section ref={card} className="card fresh" aria-labelledby="fresh" tabIndex={-1}>
      <div className="card-pad stack-4">
        <div className="row">
          <h3 id="fresh">{strings.ready}</h3>
          <span className="push">
            <Badge tone="line">{strings.shownOnce}</Badge>
          </span>
        </div>
        {secret === null ? (
          <Notice tone="wait">{strings.secretGone}</Notice>
        ) : (
          <>
            <div className="secret">
              <code>{secret}</code>
              <CopyButton text={secret} label={strings.copy} />
            </div>
            <p className="small soft">
              {strings.copyNow} {strings.webhookId}: <code>{webhook.id}</code>
            </p>
          </>
        )}
        <div className="row">
          <Button onClick={onStored}>{strings.stored}</Button>
        </div>
      </div>
      <ConfirmLeave
        when={secret !== null}
        title={strings.leaveTitle}
        text={strings.leaveEffect}
        leave={strings.leave}
        stay={strings.stay}
      />
    </section>
  );
}
