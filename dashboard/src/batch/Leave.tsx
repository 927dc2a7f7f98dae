import { useBlocker } from '@tanstack/react-router';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { strings } from './strings';

/** Asks before a person leaves while requests are under way, because the key would be lost. */
export function Leave({ unfinished }: { unfinished: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: () => unfinished,
    enableBeforeUnload: () => unfinished,
    withResolver: true,
  });
  if (blocker.status !== 'blocked') return null;
  return (
    <Dialog
      title={strings.leaveTitle}
      onClose={blocker.reset}
      onSubmit={blocker.reset}
      actions={
        <>
          <Button onClick={blocker.proceed}>{strings.leave}</Button>
          <Button look="primary" type="submit">
            {strings.stay}
          </Button>
        </>
      }
    >
      <p>{strings.leaveText}</p>
    </Dialog>
  );
}
