import { type ReactNode, useEffect, useRef } from 'react';
import { ConfirmLeave } from '../shell/ConfirmLeave';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { Notice } from '../ui/Notice';
import { strings } from './strings';

interface Words {
  shownOnce: string;
  secretGone: string;
  stored: string;
  leaveTitle: string;
  leaveEffect: string;
  leave: string;
  stay: string;
}

/** A new secret. It can be seen until a person says that it is stored. */
export function FreshSecret({
  secret,
  title,
  words,
  children,
  onStored,
}: {
  secret: string | null;
  title: ReactNode;
  words: Words;
  /** What to do with it. */
  children: ReactNode;
  onStored: () => void;
}) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => card.current?.focus(), []);
  return (
    <section ref={card} className="card fresh" aria-labelledby="fresh" tabIndex={-1}>
      <div className="card-pad stack-4">
        <div className="row">
          <h3 id="fresh">{title}</h3>
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
            <p className="small soft">{children}</p>
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
