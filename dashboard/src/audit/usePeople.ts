import type { MeResponse } from '@rota/sdk';
import { useInfiniteQuery } from '@tanstack/react-query';
import { membersQuery } from '../members/data';
import { nameOf } from '../members/rules';

export interface Person {
  id: string;
  name: string;
}

/** The people of the account. In a company, those who joined first. */
export function usePeople({ user, account }: MeResponse): Person[] {
  const members = useInfiniteQuery({
    ...membersQuery(account.id),
    enabled: account.kind === 'company',
  });
  if (account.kind === 'personal') {
    return [{ id: user.id, name: user.name ?? user.email ?? user.id }];
  }
  return (members.data?.pages ?? []).flatMap((page) =>
    page.members.map((member) => ({ id: member.userId, name: nameOf(member) })),
  );
}
