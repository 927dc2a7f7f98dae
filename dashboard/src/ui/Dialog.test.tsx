import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { Dialog } from './Dialog';

afterEach(cleanup);

function shown() {
  const onClose = vi.fn();
  render(
    <Dialog title="Rename" onClose={onClose} actions={null}>
      <input aria-label="Name" />
    </Dialog>,
  );
  return { onClose, dialog: screen.getByRole<HTMLDialogElement>('dialog') };
}

test('a dialog that the browser closes stays open until what it is about agrees', () => {
  const { onClose, dialog } = shown();
  dialog.close();
  expect(onClose).toHaveBeenCalledOnce();
  expect(dialog.open).toBe(true);
});

test('a click beside the dialog closes it, a selection of text that ends there does not', () => {
  const { onClose, dialog } = shown();
  // The browser reports a click on what contains both ends.
  fireEvent.pointerDown(screen.getByLabelText('Name'));
  fireEvent.click(dialog);
  expect(onClose).not.toHaveBeenCalled();
  fireEvent.pointerDown(dialog);
  fireEvent.click(dialog);
  expect(onClose).toHaveBeenCalledOnce();
});
