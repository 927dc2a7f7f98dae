import type { Agent, Version } from '@rota/sdk';
import { expect, test } from 'vitest';
import { asks, asksBefore, byServer } from './approval';
import { sections, select } from './selection';
import { needsCompany } from './tiers';
import { changedNames, changedSettings } from './versions';

const version: Version = {
  version: 1,
  createdAt: '2026-11-01T00:00:00Z',
  current: true,
  instructions: 'Check it.',
  model: 'default',
  tools: ['erp/get_*', 'mail/send'],
  approval: { run: false, tools: 'writes', output: true },
  budgetCents: 40,
  maxSteps: 20,
  maxConcurrent: null,
  outputSchema: null,
};

test('only the settings that differ are changes, each tool on its own', () => {
  const next = { ...version, tools: ['erp/get_*', 'mail/create_draft'], budgetCents: 60 };
  expect(changedSettings(version, next)).toEqual([
    { name: 'Budget', before: '$0.40', after: '$0.60' },
    { name: 'Tools', before: 'mail/send', after: null },
    { name: 'Tools', before: null, after: 'mail/create_draft' },
  ]);
  expect(changedNames(version, next)).toEqual(['Budget', 'Tools']);
  expect(changedNames(version, { ...version, instructions: 'Check it twice.' })).toEqual([
    'Instructions',
  ]);
});

test('a policy says what waits for a person', () => {
  const gates = (approval: Version['approval'], tools = ['crm/*']) =>
    asks(approval, tools)
      .filter((ask) => ask.asks)
      .map((ask) => ask.gate);
  expect(gates({ run: true, tools: 'always', output: true })).toEqual(['run', 'tools', 'output']);
  expect(gates({ run: false, tools: 'never', output: false })).toEqual([]);
  expect(gates({ run: false, tools: [], output: false })).toEqual([]);
  expect(gates({ run: false, tools: 'writes', output: false }, [])).toEqual([]);
  expect(asks({ run: false, tools: ['crm/delete_*'], output: false }, ['crm/*'])[1]).toMatchObject({
    asks: true,
    patterns: ['crm/delete_*'],
  });
});

test('tools are grouped by server', () => {
  expect(byServer(['crm/get_*', 'mail/send', 'crm/list_*'])).toEqual([
    { server: 'crm', tools: ['get_*', 'list_*'] },
    { server: 'mail', tools: ['send'] },
  ]);
});

test('filters narrow the catalog, and sections keep its order', () => {
  const agent = (name: string, department: string, tier: number, locked: boolean) =>
    ({ name, department, tier, locked }) as Agent;
  const catalog = [
    agent('a', 'Sales', 1, true),
    agent('b', 'Sales', 3, false),
    agent('c', 'Finance', 3, false),
  ];
  expect(select(catalog, { open: true }).map((each) => each.name)).toEqual(['b', 'c']);
  expect(
    select(catalog, { department: 'Sales', rank: 'specialist' }).map((each) => each.name),
  ).toEqual(['b']);
  expect(sections(catalog).map((each) => each.department)).toEqual(['Sales', 'Finance']);
});

test('the calls that wait for a person are named', () => {
  const policy = (tools: Version['approval']['tools'], output = false) => ({
    run: false,
    tools,
    output,
  });
  const before = (tools: Version['approval']['tools'], output?: boolean) =>
    asksBefore(policy(tools, output), ['crm/*']);
  expect(before(['crm/update_*', 'crm/merge_contacts'], true)).toBe(
    'update…, merge contacts and the result',
  );
  expect(before(['a/b', 'a/c', 'a/d', 'a/e'])).toBe('b, c and 2 more');
  expect(before('writes', true)).toBe('calls that change something and the result');
  expect(before(['banking/*'], true)).toBe('all banking calls and the result');
  expect(before(['*/*'])).toBe('every tool call');
  expect(before([])).toBe('nothing');
});

test('a personal account cannot reach the tiers of companies', () => {
  expect(needsCompany('CORPORATE', 'personal')).toBe(true);
  expect(needsCompany('CORPORATE', 'company')).toBe(false);
  expect(needsCompany('ADVANCED', 'personal')).toBe(false);
});
