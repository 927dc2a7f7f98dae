"""Lists, changes and removes the members of a company."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from asyncpg import LockNotAvailableError
from prometheus_client import Counter

from rota.accounts import members, queries
from rota.accounts import service as accounts
from rota.accounts.model import Member, Role
from rota.auth import queries as credentials
from rota.auth import verified_emails
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.errors import AdminRequired
from rota.auth.rights import ACTIONS
from rota.companies import queries as invitations
from rota.companies.errors import AlwaysApprover, LastOwner, MemberNotFound, OwnerRequired
from rota.companies.schemas import PatchMember
from rota.events import journal
from rota.platform.db import AccountReader, AccountTransaction, Database
from rota.platform.ids import to_wire
from rota.platform.membership import MembershipBusy, MembershipEnded

REMOVED = Counter("rota_members_removed_total", "Members that were removed from companies.")

# Ends what a member has set up, in the transaction that removes the member.
EndWork = Callable[[AccountTransaction, UUID], Awaitable[None]]
# Ends what only owners and admins can set up, for a user and whoever changes the user. By None: the
# operator.
EndManagement = Callable[[AccountTransaction, UUID, UUID | None], Awaitable[None]]
# Takes back the open approvals of users who can no longer approve.
WithdrawApprovals = Callable[[AccountTransaction], Awaitable[None]]
# Tells all processes that a user has lost an account: account and user.
Announce = Callable[[UUID, UUID], None]


class Members:
    def __init__(
        self,
        db: Database,
        authenticator: Authenticator,
        *,
        end_work: Sequence[EndWork],
        end_management: EndManagement,
        withdraw_approvals: WithdrawApprovals,
        announce: Announce,
    ) -> None:
        self._db = db
        self._authenticator = authenticator
        self._end_work = end_work
        self._end_management = end_management
        self._withdraw_approvals = withdraw_approvals
        self._announce = announce

    async def page(self, caller: Caller, limit: int, offset: int) -> tuple[list[Member], int]:
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            found = await members.page(tx, limit, offset)
            return found, (await members.seats(tx)).taken

    async def change(self, caller: Caller, user_id: UUID | None, body: PatchMember) -> Member:
        """Changes the role, or whether the member can approve.

        The transactions of the member end first. Later ones have the new rights.
        """
        if user_id is None:
            raise MemberNotFound
        # Without a user: two admins who change each other must not wait for each other.
        async with self._db.write(caller.account_id) as tx:
            await members.lock_membership(tx, user_id)
            await queries.lock_company(tx)
            by = await manager(tx, caller)
            before = await _get(tx, user_id)
            role = body.role or before.role
            if "owner" in (role, before.role) and role != before.role and by.role != "owner":
                raise OwnerRequired
            if role != "owner":
                await _check_other_owner(tx, before)
            _check_approver(role, body.approver)
            await members.put(tx, before.user_id, role, body.approver)
            after = await self._changed(tx, before, user_id, caller.user_id)
        self._authenticator.forget_member(caller.account_id, before.user_id)
        return after

    async def put(
        self, account_id: UUID, user_id: UUID, role: Role | None, approver: bool | None
    ) -> Member:
        """Adds or changes a member, for the operator. With None, a role or right stays as it is."""
        async with self._db.write(account_id, user_id, check_member=False) as tx:
            await members.lock_membership(tx, user_id)
            if not await queries.lock_company(tx):
                raise accounts.CompanyNotFound(account_id)
            await accounts.check_user(tx, user_id)
            before = await members.find(tx, user_id)
            if before is not None and role not in (None, "owner"):
                await _check_other_owner(tx, before)
            new_role = role or (before.role if before else "member")
            _check_approver(new_role, approver)
            await accounts.add_member(tx, user_id, new_role, approver)
            after = await self._changed(tx, before, user_id, None)
        self._authenticator.forget_member(account_id, user_id)
        return after

    async def _changed(
        self, tx: AccountTransaction, before: Member | None, user_id: UUID, by: UUID | None
    ) -> Member:
        """Ends what the member can no longer do, and records the change. The new member."""
        after = await _get(tx, user_id)
        if before is not None and before.role != "member" and after.role == "member":
            await self._end_management(tx, user_id, by)
        if after != before:
            if before is not None:
                await self._withdraw_approvals(tx)
            kind = "member.updated" if before else "member.added"
            data = {"role": after.role, "approver": after.approver}
            await record(tx, kind, user_id, by, **data)
        return after

    async def remove(
        self, account_id: UUID, user_id: UUID | None, *, by: Caller | None, last: bool = False
    ) -> None:
        """Removes a member, and everything that acts for the member. By None: the operator. With
        `last`, also the last owner, for a user whose account is erased.

        The transactions of the member end first. Later ones are refused.
        """
        if user_id is None:
            raise MemberNotFound
        try:
            revoked = await self._remove(account_id, user_id, by, last)
        except LockNotAvailableError:
            raise MembershipBusy from None
        for secret_hash in revoked:
            self._authenticator.forget_key(secret_hash)
        self._announce(account_id, user_id)
        REMOVED.inc()

    async def _remove(
        self, account_id: UUID, user_id: UUID, by: Caller | None, last: bool
    ) -> list[bytes]:
        """Returns the hashes of the API keys that stop working."""
        # As the user who leaves, whose addresses it reads. The caller's membership is not locked:
        # two admins who remove each other must not wait for each other.
        async with self._db.write(account_id, user_id, check_member=False) as tx:
            await members.lock_membership(tx, user_id)
            if not await queries.lock_company(tx):
                raise accounts.CompanyNotFound(account_id)
            await _check_may_remove(tx, by, user_id)
            member = await _get(tx, user_id)
            if not last:
                await _check_other_owner(tx, member)
            await members.delete(tx, user_id)
            by_id = by.user_id if by else None
            # First, because they lock rows that others lock before the event journal.
            revoked = await credentials.delete_keys_of(tx, user_id)
            # What the user has created, and what the user could come back with.
            emails = await verified_emails.of_user(tx, user_id)
            uninvited = await invitations.delete_by_or_for(tx, user_id, emails)
            for end_work in self._end_work:
                await end_work(tx, user_id)
            await self._end_management(tx, user_id, by_id)
            # Last, because it locks the event journal, which others lock after a schedule.
            await self._withdraw_approvals(tx)
            for key_id, _ in revoked:
                data = {"keyId": to_wire("key", key_id), "by": _wire_user(by_id)}
                await journal.append(tx, "key.revoked", data)
            for invitation_id in uninvited:
                data = {"invitationId": to_wire("inv", invitation_id), "by": _wire_user(by_id)}
                await journal.append(tx, "invitation.deleted", data)
            await record(tx, journal.MEMBER_REMOVED, user_id, by_id)
        return [secret_hash for _, secret_hash in revoked]


def _check_approver(role: Role, approver: bool | None) -> None:
    if role != "member" and approver is False:
        raise AlwaysApprover


async def _check_may_remove(tx: AccountReader, by: Caller | None, user_id: UUID) -> None:
    """Everybody can leave. The operator can remove all members."""
    if by is None or by.user_id == user_id:
        return
    remover = await manager(tx, by)
    if remover.role != "owner" and (await _get(tx, user_id)).role == "owner":
        raise OwnerRequired


async def record(
    tx: AccountTransaction, kind: str, user_id: UUID, by: UUID | None, **data: object
) -> None:
    shown = {"userId": to_wire("user", user_id), **data, "by": _wire_user(by)}
    await journal.append(tx, kind, shown)


def _wire_user(user_id: UUID | None) -> str | None:
    return to_wire("user", user_id) if user_id else None


async def manager(tx: AccountReader, caller: Caller) -> Member:
    """The caller as a member. The role can have changed since the request was authenticated."""
    found = await members.find(tx, caller.user_id)
    if found is None:
        raise MembershipEnded
    if found.role == "member":
        raise AdminRequired(ACTIONS["members"])
    return found


async def _get(tx: AccountReader, user_id: UUID) -> Member:
    found = await members.find(tx, user_id)
    if found is None:
        raise MemberNotFound
    return found


async def _check_other_owner(tx: AccountReader, member: Member) -> None:
    """Refuses to leave the company without an owner."""
    if member.role == "owner" and await members.owners(tx) == 1:
        raise LastOwner
