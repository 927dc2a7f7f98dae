import { APIError } from '@rota/sdk';
import { Button } from '../ui/Button';
import { ErrorNotice, Notice } from '../ui/Notice';
import { strings } from './strings';
import type { Sent } from './useBatch';

/** What went wrong with a whole request, and what can be done about it. */
export function Notices({
  sent,
  onTryAgain,
  onStop,
}: {
  sent: Sent;
  onTryAgain: () => void;
  onStop: () => void;
}) {
  if (sent.phase === 'failed') {
    const actions = (
      <>
        <Button look="primary" icon="retry" onClick={onTryAgain}>
          {strings.tryAgain}
        </Button>
        <Button onClick={onStop}>{strings.giveUp}</Button>
      </>
    );
    const requestId = sent.error instanceof APIError ? sent.error.requestId : null;
    return sent.uncertain ? (
      <div role="alert">
        <Notice tone="bad" title={strings.lostTitle} actions={actions}>
          <p>{strings.lost}</p>
          {requestId && (
            <p className="tiny faint">
              {strings.request} <code>{requestId}</code>
            </p>
          )}
        </Notice>
      </div>
    ) : (
      <ErrorNotice error={sent.error} actions={actions} />
    );
  }
  const isUnknown = [...sent.outcomes.values()].some(({ kind }) => kind === 'unknown');
  if (!isUnknown) return null;
  return <Notice tone="wait">{strings.unknownHint}</Notice>;
}
