import { describe, expect, it } from 'vitest';
import { ExactNumber, stringifyExact } from '../api/exact';
import { conditionOf, conditionsOf, type Row, rowsOf, wordsOf } from './conditions';

const schema = {
  type: 'object',
  properties: { text: { type: 'string' }, amount: { type: 'number' }, urgent: {} },
  required: ['text'],
};

const chosen = (changes: Partial<Row>): Row => {
  const [, amount] = rowsOf(schema, { text: 'one', amount: 5 });
  if (!amount) throw new Error('There is no row.');
  return { ...amount, ...changes };
};

describe('the conditions of a rule', () => {
  it('cover exactly the call that they are made from', () => {
    const call = { text: 'one', amount: new ExactNumber('10000000000000000001'), other: null };
    const conditions = conditionsOf(rowsOf(schema, call));
    expect(stringifyExact(conditions)).toBe(
      '{"text":{"const":"one"},"amount":{"const":10000000000000000001},"other":{"const":null}}',
    );
  });

  it('without a call, name only what is required', () => {
    expect(conditionsOf(rowsOf(schema))).toEqual({ text: { any: true } });
  });

  it('offer a range for numbers only', () => {
    const offered = rowsOf(schema, { text: '7', amount: 5 }).map((row) =>
      row.choices.includes('range'),
    );
    expect(offered).toEqual([false, true, false]);
  });

  it('send a range with one or two ends, the smaller one first', () => {
    const range = (least: string, most: string) =>
      conditionOf(chosen({ choice: 'range', least, most }));
    expect(range('1', '50')).toEqual({ condition: { min: 1, max: 50 } });
    expect(range('', '2.5')).toEqual({ condition: { max: 2.5 } });
    for (const wrong of [range('', ''), range('x', '1'), range('2', '1')]) {
      expect(wrong).toHaveProperty('problem');
    }
  });

  it('send one of several values, as text or as JSON', () => {
    const oneOf = { choice: 'oneOf', oneOf: '1\n\n2' } as const;
    expect(conditionOf(chosen({ ...oneOf, isText: true }))).toEqual({
      condition: { enum: ['1', '2'] },
    });
    expect(conditionOf(chosen({ ...oneOf, isText: false }))).toEqual({
      condition: { enum: [1, 2] },
    });
    expect(conditionOf(chosen({ ...oneOf, isText: false, oneOf: 'x' }))).toHaveProperty('problem');
    expect(conditionOf(chosen({ ...oneOf, oneOf: ' ' }))).toHaveProperty('problem');
  });

  it('are not sent if one of them is not valid', () => {
    expect(conditionsOf([chosen({ exact: '{' })])).toBeNull();
    expect(conditionsOf([chosen({ exact: '{', choice: 'absent' })])).toEqual({});
  });

  it('are shown in words', () => {
    expect(wordsOf({ const: 'a' })).toBe('exactly "a"');
    expect(wordsOf({ enum: [1, null] })).toBe('one of 1, null');
    expect(wordsOf({ min: 1, max: 5 })).toBe('from 1 up to 5');
    expect(wordsOf({ any: true })).toBe('any value');
  });
});
