import type { KeyCreatedResponse } from '@rota/sdk';
import { useBlocker } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { Dialog } from '../ui/Dialog';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

const words = strings.keys;

/** A new key, with its secret. It can be seen until a person says that it is stored. */
export function FreshKey({
  created: { key, secret },
  onStored,
}: {
  created: KeyCreatedResponse;
  onStored: () => void;
}) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => card.current?.focus(), []);
  const blocker = useBlocker({
    shouldBlockFn: () => secret !== null,
    enableBeforeUnload: () => secret !== null,
    withResolver: true,
  });
  return (
    <section ref={card} className="card fresh" aria-labelledby="fresh" tabIndex={-1}>
      <div className="card-pad stack-4">
        <div className="row">
          <h3 id="fresh">
            “<SafeText>{key.name}</SafeText>” {words.ready}
          </h3>
          <span className="push">
            <Badge tone="line">{words.shownOnce}</Badge>
          </span>
        </div>
        {secret === null ? (
          <Notice tone="wait">{words.secretGone}</Notice>
        ) : (
          <>
            <div className="secret">
              <code>{secret}</code>
              <CopyButton text={secret} label={strings.copy} />
            </div>
            <p className="small soft">{words.copyNow}</p>
          </>
        )}
        <div className="row">
          <Button onClick={onStored}>{words.stored}</Button>
        </div>
      </div>
      {blocker.status === 'blocked' && (
        <Dialog
          title={words.leaveTitle}
          onClose={blocker.reset}
          onSubmit={blocker.reset}
          actions={
            <>
              <Button onClick={blocker.proceed}>{words.leave}</Button>
              <Button look="primary" type="submit">
                {words.stay}
              </Button>
            </>
          }
        >
          <p>{words.leaveEffect}</p>
        </Dialog>
      )}
    </section>
  );
}
