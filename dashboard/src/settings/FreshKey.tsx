import type { KeyCreatedResponse } from '@rota/sdk';
import { useEffect, useRef } from 'react';
import { ConfirmLeave } from '../shell/ConfirmLeave';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
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
      <ConfirmLeave
        when={secret !== null}
        title={words.leaveTitle}
        text={words.leaveEffect}
        leave={words.leave}
        stay={words.stay}
      />
    </section>
  );
}
