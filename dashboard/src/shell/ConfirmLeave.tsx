import { useBlocker } from '@tanstack/react-router';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';

/** Asks before a person leaves the page, while something on it would be lost. */
export function ConfirmLeave({
  when,
  title,
  text,
  leave,
  stay,
}: {
  when: boolean;
  title: string;
  text: string;
  leave: string;
  stay: string;
}) {
  const blocker = useBlocker({
    shouldBlockFn: () => when,
    enableBeforeUnload: () => when,
    withResolver: true,
  });
  if (blocker.status !== 'blocked') return null;
  return (
    <Dialog
      title={title}
      onClose={blocker.reset}
      onSubmit={blocker.reset}
      actions={
        <>
          <Button onClick={blocker.proceed}>{leave}</Button>
          <Button look="primary" type="submit">
            {stay}
          </Button>
        </>
      }
    >
      <p>{text}</p>
    </Dialog>
  );
}
