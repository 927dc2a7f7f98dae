import type { InvitedResponse } from '@rota/sdk';
import { useEffect, useRef } from 'react';
import { Badge } from '../ui/Badge';
import { Button } from '../ui/Button';
import { CopyButton } from '../ui/CopyButton';
import { Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { strings } from './strings';

/** A new invitation with its link, which is not shown again. */
export function FreshLink({
  invited: { invitation, url },
  onDone,
}: {
  invited: InvitedResponse;
  onDone: () => void;
}) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => card.current?.focus(), []);
  return (
    <section ref={card} className="card fresh" aria-labelledby="fresh-link" tabIndex={-1}>
      <div className="card-pad stack-4">
        <div className="row">
          <h3 id="fresh-link">
            <SafeText>{strings.fresh(invitation.email)}</SafeText>
          </h3>
          <span className="push">
            <Badge tone="line">{strings.shownOnce}</Badge>
          </span>
        </div>
        {url === null ? (
          <Notice tone="wait">{strings.linkGone}</Notice>
        ) : (
          <>
            <div className="secret secret-link">
              <code>{url}</code>
              <CopyButton text={url} label={strings.copyLink} />
            </div>
            <p className="small soft">{strings.freshHint}</p>
          </>
        )}
        <div className="row">
          <Button onClick={onDone}>{strings.done}</Button>
        </div>
      </div>
    </section>
  );
}
