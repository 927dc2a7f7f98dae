import type { ServerStatus } from '@rota/sdk';
import { Icon } from '../ui/Icon';
import { Shape } from '../ui/Status';
import { statusWords } from './strings';

const tones: Record<ServerStatus, 'done' | 'waiting' | 'failed'> = {
  CONNECTED: 'done',
  CHANGED: 'waiting',
  UNREACHABLE: 'failed',
  AUTH_FAILED: 'failed',
};

/** A shape and a word for the status of a tool server. */
export function ServerState({ status }: { status: ServerStatus }) {
  return (
    <span className={`status is-${tones[status]}`}>
      {status === 'AUTH_FAILED' ? <Icon name="lock" small /> : <Shape shape={tones[status]} />}
      <span>{statusWords[status]}</span>
    </span>
  );
}
