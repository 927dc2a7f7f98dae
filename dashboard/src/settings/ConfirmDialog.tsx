import type { ReactNode } from 'react';
import { Button } from '../ui/Button';
import { Dialog } from '../ui/Dialog';
import { ErrorNotice } from '../ui/Notice';
import { strings } from './strings';

/** Asks before something that cannot be undone. */
export function ConfirmDialog({
  title,
  action,
  busy,
  error,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  action: string;
  busy: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => !busy && onConfirm()}
      actions={
        <>
          <Button onClick={onClose}>{strings.cancel}</Button>
          <Button look="danger-solid" type="submit" busy={busy}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {error !== null && error !== undefined && <ErrorNotice error={error} />}
    </Dialog>
  );
}
