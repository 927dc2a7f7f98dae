import { cleanup, render } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { Span } from './Time';

afterEach(cleanup);

const ahead = (ms: number) => new Date(Date.now() + ms + 1_000).toISOString();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test.each([
  [6 * 24 * HOUR + 23 * HOUR, '6 d 23 h', '6 d'],
  [5 * HOUR + 14 * MINUTE, '5 h 14 min', '5 h'],
  [12 * MINUTE, '12 min', '12 min'],
])('%i ms are %s, in brief %s', (ms, whole, brief) => {
  expect(render(<Span to={ahead(ms)} />).container.textContent).toBe(whole);
  expect(render(<Span to={ahead(ms)} brief />).container.textContent).toBe(brief);
});
