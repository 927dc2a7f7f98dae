import type { Member, Role } from '@rota/sdk';
import { expect, test } from 'vitest';
import { changeOf, isFull, isLastOwner, nameOf, possible, rolesToGive } from './rules';
import { strings } from './strings';

const member = (userId: string, role: Role, more: Partial<Member> = {}): Member => ({
  userId,
  role,
  name: null,
  email: null,
  approver: role !== 'member',
  joinedAt: '2026-11-02T09:30:00.000Z',
  ...more,
});

const owner = member('user_1', 'owner');
const admin = member('user_2', 'admin');
const worker = member('user_3', 'member');

test('owners manage everybody, admins everybody but owners, members only themselves', () => {
  const by = (who: Member) => ({ userId: who.userId, role: who.role });
  const all = { change: true, remove: true, leave: false };
  const none = { change: false, remove: false, leave: false };
  expect(possible(admin, by(owner), false)).toEqual(all);
  expect(possible(worker, by(admin), false)).toEqual(all);
  expect(possible(owner, by(admin), false)).toEqual(none);
  expect(possible(admin, by(worker), false)).toEqual(none);
  expect(possible(worker, by(worker), false)).toEqual({ ...none, leave: true });
  // An admin can give up the role, and leave, but not be removed by a click on the own row.
  expect(possible(admin, by(admin), false)).toEqual({ change: true, remove: false, leave: true });
});

test('the last owner cannot leave or get another role', () => {
  expect(isLastOwner(owner, [owner, admin, worker], true)).toBe(true);
  expect(isLastOwner(owner, [owner, member('user_4', 'owner')], true)).toBe(false);
  expect(isLastOwner(admin, [owner, admin], true)).toBe(false);
  // There may be another owner on a page that is not loaded: the API decides.
  expect(isLastOwner(owner, [owner, admin], false)).toBe(false);
  expect(possible(owner, { userId: 'user_1', role: 'owner' }, true)).toEqual({
    change: false,
    remove: false,
    leave: false,
  });
});

test('nobody can give a role above the own one', () => {
  expect(rolesToGive('owner')).toEqual(['member', 'admin', 'owner']);
  expect(rolesToGive('admin')).toEqual(['member', 'admin']);
  expect(rolesToGive('member')).toEqual([]);
});

test('the right to approve is sent for members only, because others always have it', () => {
  expect(changeOf('member', true)).toEqual({ role: 'member', approver: true });
  expect(changeOf('admin', false)).toEqual({ role: 'admin' });
});

test('seats are full at their number, and never without a limit', () => {
  expect(isFull({ seats: 10, members: 9 })).toBe(false);
  expect(isFull({ seats: 10, members: 10 })).toBe(true);
  expect(isFull({ seats: 10, members: 12 })).toBe(true);
  expect(isFull({ seats: null, members: 5000 })).toBe(false);
  expect(strings.seats(1, 10)).toBe('1 of 10 seats used');
});

test('a member is called by name, address or ID', () => {
  expect(nameOf(member('user_1', 'member', { name: 'Ada', email: 'a@b.test' }))).toBe('Ada');
  expect(nameOf(member('user_1', 'member', { email: 'a@b.test' }))).toBe('a@b.test');
  expect(nameOf(member('user_1', 'member'))).toBe('user_1');
});
