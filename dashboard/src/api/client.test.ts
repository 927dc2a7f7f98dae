import { afterEach, expect, test, vi } from 'vitest';
import { queryClient } from './cache';
import { ApiError, unanswered } from './client';

afterEach(() => vi.restoreAllMocks());

test('without a network, what a person does fails at once and is not sent later', async () => {
  vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  globalThis.dispatchEvent(new Event('offline'));
  const send = vi.fn(() => Promise.reject(unanswered('POST', false)));
  const action = queryClient
    .getMutationCache()
    .build(queryClient, queryClient.defaultMutationOptions({ mutationFn: send }));
  await expect(action.execute(undefined)).rejects.toBeInstanceOf(ApiError);
  globalThis.dispatchEvent(new Event('online'));
  await queryClient.resumePausedMutations();
  expect(send).toHaveBeenCalledTimes(1);
});

test('the error says whether anything was sent', () => {
  expect(unanswered('GET', true).message).toBe('No connection to the service.');
  expect(unanswered('POST', false).message).toBe('Not sent: no connection. Nothing was changed.');
  expect(unanswered('POST', true).message).toContain('Look whether it was done');
});
