import type { ToolServer } from '@rota/sdk';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { api } from '../api/client';
import { EditDialog } from './EditDialog';

afterEach(cleanup);

test('what somebody else changes while the dialog is open is not changed back', async () => {
  const server = { name: 'notes', url: 'https://a.example/mcp', transport: 'sse' } as ToolServer;
  const cache = new QueryClient();
  const dialog = (shown: ToolServer) => (
    <QueryClientProvider client={cache}>
      <EditDialog server={shown} onClose={() => undefined} />
    </QueryClientProvider>
  );
  const { rerender } = render(dialog(server));
  rerender(dialog({ ...server, name: 'papers' }));
  const save = screen.getByRole<HTMLButtonElement>('button', { name: 'Save' });
  expect(save.disabled).toBe(true);
  const update = vi.spyOn(api.toolServers, 'update').mockReturnValue(new Promise(() => undefined));
  fireEvent.change(screen.getByLabelText('URL'), { target: { value: 'https://b.example/mcp' } });
  fireEvent.click(save);
  await waitFor(() => expect(update).toHaveBeenCalled());
  expect(update.mock.lastCall?.[1]).toEqual({ url: 'https://b.example/mcp' });
});
