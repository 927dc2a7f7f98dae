import { expect, test } from 'vitest';
import { snoozeChoices } from './snooze';

const local = (text: string) => new Date(text);
const times = (now: string, expires: string) =>
  snoozeChoices(local(now), local(expires).toISOString()).map(({ until }) => until.toString());

test('on a Monday morning, next Monday is a week away', () => {
  expect(times('2026-11-16T09:00:00', '2026-11-30T09:00:00')).toEqual(
    [
      '2026-11-16T10:00:00',
      '2026-11-16T18:00:00',
      '2026-11-17T08:00:00',
      '2026-11-23T08:00:00',
    ].map((time) => local(time).toString()),
  );
});

test('nothing comes back after the deadline, or before now', () => {
  expect(times('2026-11-16T19:00:00', '2026-11-17T09:00:00')).toEqual(
    ['2026-11-16T20:00:00', '2026-11-17T08:00:00'].map((time) => local(time).toString()),
  );
});

test('on a Sunday, tomorrow and next Monday are one choice', () => {
  expect(times('2026-11-15T12:00:00', '2026-12-01T09:00:00')).toHaveLength(3);
});
