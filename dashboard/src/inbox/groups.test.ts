import type { Approval } from '@rota/sdk';
import { expect, test } from 'vitest';
import { decisionWords, groupsOf } from './groups';

const waits = (id: string, agent: string | null, gate: string | null, tool?: string) =>
  ({
    task: { id, assignedAgent: agent },
    review: { gate, items: tool ? [{ tool, serverId: 'srv_1', toolTitle: null }] : [] },
    snoozedUntil: null,
  }) as unknown as Approval;

test('what is alike stands together, where the oldest of it stood', () => {
  const groups = groupsOf([
    waits('1', 'ticket-responder', 'tool', 'reply_to_ticket'),
    waits('2', 'payables-clerk', 'tool', 'prepare_payment_batch'),
    waits('3', 'ticket-responder', 'tool', 'reply_to_ticket'),
    waits('4', 'ticket-responder', 'tool', 'set_tags'),
    waits('5', 'ticket-responder', 'run'),
  ]);
  expect(groups.map(({ approvals }) => approvals.map(({ task }) => task.id))).toEqual([
    ['1', '3'],
    ['2'],
    ['4'],
    ['5'],
  ]);
  expect(groups[0]?.words).toBe('reply to ticket');
});

test('results are accepted, and everything else is approved', () => {
  const result = waits('1', 'ticket-responder', 'output');
  const call = waits('2', 'ticket-responder', 'tool', 'set_tags');
  expect(decisionWords('approve', [result, result]).button(2)).toBe('Accept 2');
  expect(decisionWords('approve', [result, call]).button(2)).toBe('Approve 2');
  expect(decisionWords('reject', [result]).button(1)).toBe('Reject 1');
});
