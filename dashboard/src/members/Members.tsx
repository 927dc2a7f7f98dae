import type { InvitedResponse, Member, MeResponse } from '@rota/sdk';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { meQuery } from '../api/queries';
import { SectionHead } from '../settings/SectionHead';
import { Button, buttonClass } from '../ui/Button';
import { Loading } from '../ui/Loading';
import { ErrorNotice, Notice } from '../ui/Notice';
import { SafeText } from '../ui/SafeText';
import { ChangeDialog } from './ChangeDialog';
import { companyQuery, membersQuery } from './data';
import { FreshLink } from './FreshLink';
import { Invitations } from './Invitations';
import { InviteDialog } from './InviteDialog';
import { MemberTable } from './MemberTable';
import { More } from './More';
import { RemoveDialog } from './RemoveDialog';
import { canManage, isFull, isLastOwner, possible, rolesToGive } from './rules';
import { strings } from './strings';

/** The members of a company. Personal accounts do not have this page. */
export function Members() {
  const { data: me, error } = useQuery(meQuery);
  if (me) return <OfCompany me={me} />;
  return error ? <ErrorNotice error={error} /> : <Loading />;
}

function OfCompany({ me: { user, account } }: { me: MeResponse }) {
  const company = useQuery(companyQuery(account.id)).data;
  const found = useInfiniteQuery(membersQuery(account.id));
  const [inviting, setInviting] = useState(false);
  // The link is only here, never in the cache: it goes when the page goes.
  const [fresh, setFresh] = useState<InvitedResponse | null>(null);
  const [changing, setChanging] = useState<Member | null>(null);
  const [removing, setRemoving] = useState<Member | null>(null);
  const members = found.data?.pages.flatMap((page) => page.members) ?? [];
  const isComplete = found.data !== undefined && !found.hasNextPage;
  const isLast = (member: Member) => isLastOwner(member, members, isComplete);
  const self = members.find((member) => member.userId === user.id);
  const manages = canManage(account.role);
  const roles = rolesToGive(account.role);
  return (
    <>
      <SectionHead title={strings.name} hint={<SafeText>{strings.hint(account.name)}</SafeText>}>
        {manages && company && (
          <Button
            look="primary"
            icon="plus"
            disabled={isFull(company)}
            onClick={() => setInviting(true)}
          >
            {strings.invite}
          </Button>
        )}
      </SectionHead>
      {fresh && (
        <FreshLink key={fresh.invitation.id} invited={fresh} onDone={() => setFresh(null)} />
      )}
      {manages && company && <NoSeats company={company} />}
      {found.error && <ErrorNotice error={found.error} />}
      {!found.data && !found.error && <Loading />}
      {found.data && (
        <section className="card" aria-labelledby="members">
          <div className="card-head">
            <h3 id="members">{strings.table}</h3>
            {company && (
              <span className="push small soft num">
                {strings.seats(company.members, company.seats)}
              </span>
            )}
          </div>
          <MemberTable
            members={members}
            me={user.id}
            can={(member) =>
              possible(member, { userId: user.id, role: account.role }, isLast(member))
            }
            onChange={setChanging}
            onRemove={setRemoving}
          />
          {found.hasNextPage && (
            <More
              shown={members.length}
              total={found.data.pages.at(-1)?.total ?? 0}
              busy={found.isFetchingNextPage}
              onMore={found.fetchNextPage}
            />
          )}
        </section>
      )}
      {self && isLast(self) && <p className="small soft">{strings.lastOwner}</p>}
      {manages && (
        <Invitations
          company={account.id}
          members={members}
          roles={roles}
          onInvited={setFresh}
          onRevoked={({ id }) => setFresh((shown) => (shown?.invitation.id === id ? null : shown))}
        />
      )}
      {inviting && (
        <InviteDialog
          company={account.id}
          roles={roles}
          onClose={() => setInviting(false)}
          onInvited={(invited) => {
            setInviting(false);
            setFresh(invited);
          }}
        />
      )}
      {changing && (
        <ChangeDialog
          company={account.id}
          member={changing}
          roles={roles}
          onClose={() => setChanging(null)}
        />
      )}
      {removing && (
        <RemoveDialog
          company={account}
          member={removing}
          isSelf={removing.userId === user.id}
          onClose={() => setRemoving(null)}
        />
      )}
    </>
  );
}

/** Says why nobody can be invited, and what to do about it. */
function NoSeats({
  company: { id, seats, members },
}: {
  company: { id: string; seats: number | null; members: number };
}) {
  if (seats === null || members < seats) return null;
  return (
    <Notice
      tone="wait"
      actions={
        <Link className={buttonClass({ size: 's' })} to="/$account/money" params={{ account: id }}>
          {strings.toPlan}
        </Link>
      }
    >
      {members > seats ? strings.over(members, seats) : strings.full(seats)}
    </Notice>
  );
}
