import { exact } from '../ui/format';
import { longDay } from './dates';

/** "16 November", with the exact time on hover. */
export function OnDay({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exact(at)}>
      {longDay(at)}
    </time>
  );
}
