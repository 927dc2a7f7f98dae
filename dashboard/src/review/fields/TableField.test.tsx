import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, expect, test } from 'vitest';
import type { Edit } from '../edits';
import { fieldsOf } from '../schema';
import { TableField } from './TableField';

afterEach(cleanup);

const row = (id: number) => ({ id, amount: 10 * id });
const [field] = fieldsOf(null, { bills: [row(1), row(2), row(3)] });

function Table() {
  const [edit, setEdit] = useState<Edit>();
  return field ? <TableField field={field} edit={edit} onEdit={setEdit} /> : null;
}

test('rows that were left out stay left out when the rest is edited as JSON', () => {
  render(<Table />);
  fireEvent.click(screen.getAllByRole('button', { name: /^Leave out/ })[1] as HTMLElement);
  fireEvent.click(screen.getByRole('button', { name: 'Edit as JSON' }));
  const shown = screen.getByRole<HTMLTextAreaElement>('textbox').value;
  expect(JSON.parse(shown)).toEqual([row(1), row(3)]);
});
