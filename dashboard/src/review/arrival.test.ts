import { act, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { arrivesAlone, useTooSoon } from './arrival';

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => vi.useRealTimers());

const later = (ms: number) => vi.advanceTimersByTime(ms);
const press = (key: string) => dispatchEvent(new KeyboardEvent('keydown', { key }));

test('A that is pressed again and again approves only what the person chose', () => {
  later(10);
  const first = renderHook(({ key }) => useTooSoon(key), { initialProps: { key: 'one' } });
  expect(first.result.current()).toBe(false);
  act(arrivesAlone);
  first.rerender({ key: 'two' });
  for (let presses = 0; presses < 4; presses++) {
    later(900);
    press('a');
    expect(first.result.current()).toBe(true);
  }
  later(2_000);
  expect(first.result.current()).toBe(false);
});

test('who moved to it or scrolled has chosen it', () => {
  later(10);
  arrivesAlone();
  const { result } = renderHook(() => useTooSoon('one'));
  expect(result.current()).toBe(true);
  press('j');
  expect(result.current()).toBe(false);
});

test('content that is replaced under an open page has not been chosen', () => {
  later(10);
  press('j');
  const { result, rerender } = renderHook(({ key }) => useTooSoon(key), {
    initialProps: { key: 'one' },
  });
  expect(result.current()).toBe(false);
  rerender({ key: 'two' });
  expect(result.current()).toBe(true);
});
