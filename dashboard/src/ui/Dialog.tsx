import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef } from 'react';

/** The browser's own dialog: it traps focus, closes on Escape and gives focus back. */
export function Dialog({
  title,
  children,
  actions,
  onClose,
  onSubmit,
}: {
  title: string;
  children: ReactNode;
  actions: ReactNode;
  onClose: () => void;
  /** Also called by ⌘↵ from any field. */
  onSubmit?: () => void;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const pressed = useRef<EventTarget>(null);
  const id = useId();
  // Before the dialog leaves the page: afterwards the browser does not give focus back.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSubmit?.();
  };
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClose={() => {
        const dialog = ref.current;
        if (!dialog || dialog.open) return;
        // Chrome lets a page refuse two Escapes, and no more until the next click.
        onClose();
        dialog.showModal();
      }}
      onPointerDown={(event) => {
        pressed.current = event.target;
      }}
      onClick={(event) => {
        // A selection of text that ends outside is a click on the dialog, too.
        const outside = event.target === ref.current && pressed.current === ref.current;
        if (outside) onClose();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
          // In a field of one line, it can submit the form once more.
          event.preventDefault();
          if (!event.repeat) onSubmit?.();
        }
        event.stopPropagation();
      }}
    >
      <form onSubmit={submit} noValidate>
        <div className="dialog-body">
          <h2 id={id}>{title}</h2>
          {children}
        </div>
        <div className="dialog-foot">{actions}</div>
      </form>
    </dialog>
  );
}
