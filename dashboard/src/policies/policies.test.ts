import { describe, expect, it } from 'vitest';
import { approvalsOf, formOf, isChanged } from './form';

const stored = { approvers: 'named', secondPerson: true, maxCostCents: 1250 } as const;

describe('the form of the policies', () => {
  it('sends what is stored if nothing was changed', () => {
    expect(approvalsOf(formOf(stored))).toEqual(stored);
    expect(isChanged(formOf(stored), stored)).toBe(false);
  });

  it('sends no limit if there is none, whatever the amount is', () => {
    const form = { ...formOf(stored), limited: false, limit: 'much' };
    expect(approvalsOf(form)).toEqual({ ...stored, maxCostCents: null });
    expect(isChanged(form, stored)).toBe(true);
  });

  it('refuses an amount that is not valid or too large', () => {
    for (const limit of ['', 'much', '-1', '100000.01']) {
      expect(approvalsOf({ ...formOf(stored), limit })).toBeNull();
    }
    expect(approvalsOf({ ...formOf(stored), limit: '0' })?.maxCostCents).toBe(0);
  });
});
