import type { ServerStatus } from '@rota/sdk';
import { Icon } from '../ui/Icon';
import { Shape } from '../ui/Status';
import { statusWords, strings } from './strings';

const tones: Record<ServerStatus, 'done' | 'waiting' | 'failed'> = {
  CONNECTED: 'done',
  CHANGED: 'waiting',
  UNREACHABLE: 'failed',
  AUTH_FAILED: 'failed',
};

/** A shape and a word for the status of a tool server. `now` says what to do about it. */
export function ServerState({ status, now }: { status: ServerStatus; now?: boolean }) {
  const words = now && status === 'CHANGED' ? strings.toAccept : statusWords[status];
  return (
    <span className={`status is-${tones[status]}`}>
      {status === 'AUTH_FAILED' ? <Icon name="lock" small /> : <Shape shape={tones[status]} />}
      <span>{words}</span>
    </span>
  );
}
