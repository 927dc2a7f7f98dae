"""Stops an account at once, for good. Workers then erase what it has (`erasing`)."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import structlog

from rota.accounts import erasure as accounts
from rota.accounts import members as member_queries
from rota.accounts import queries as account_queries
from rota.accounts.erasure import Subject
from rota.accounts.service import AccountNotFound
from rota.auth import erasure as credentials
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.companies import queries as invitations
from rota.companies.errors import LastOwner, MemberNotFound
from rota.companies.members import Members
from rota.credits import retention as credits_retention
from rota.data import queries, tables
from rota.data.errors import MoneyOwed, RecentSignInRequired, SoleOwner, wrong_name
from rota.data.queries import Erasure
from rota.events import journal
from rota.events import retention as events
from rota.mcp import erasure as servers
from rota.platform import clock, membership
from rota.platform.db import NO_USER, AccountTransaction, Database
from rota.platform.ids import to_wire
from rota.schedules import pausing
from rota.tasks import retention as tasks

log = structlog.get_logger()

LANE = "data"
MAX_SESSION_AGE = timedelta(minutes=10)


@dataclass(slots=True)
class _Stopped:
    """What other processes must forget."""

    user_ids: list[UUID] = field(default_factory=list)
    session_ids: list[UUID] = field(default_factory=list)
    secret_hashes: list[bytes] = field(default_factory=list)


class Erasures:
    def __init__(
        self,
        db: Database,
        authenticator: Authenticator,
        members: Members,
        *,
        announce: Callable[[UUID, UUID], None],
    ) -> None:
        self._db = db
        self._authenticator = authenticator
        self._members = members
        # Tells all processes that a user has lost an account: account and user.
        self._announce = announce

    async def request(self, caller: Caller, name: str) -> Erasure:
        """Erases the caller's account. All its activity stops at the commit."""
        account_id, user_id = caller.account_id, caller.user_id
        async with self._db.read(user_id, user_id) as tx:
            assert caller.session_id is not None
            started = await credentials.signed_in_at(tx, caller.session_id)
        if started is None or clock.now() - started > MAX_SESSION_AGE:
            raise RecentSignInRequired
        async with self._db.read(account_id, user_id) as tx:
            subject = await accounts.subject(tx)
        if subject is None or subject.name != name:
            raise wrong_name()
        return await self._erase(account_id, subject, caller)

    async def erase(self, account_id: UUID) -> Erasure:
        """For an operator. Does nothing if the account is being erased, or was."""
        async with self._db.read(account_id) as tx:
            subject = await accounts.subject(tx)
            found = await queries.find_erasure(tx)
        if subject is None:
            raise AccountNotFound(account_id)
        return found or await self._erase(account_id, subject, None)

    async def find(self, account_id: UUID) -> Erasure | None:
        async with self._db.read(account_id) as tx:
            return await queries.find_erasure(tx)

    async def _erase(self, account_id: UUID, subject: Subject, caller: Caller | None) -> Erasure:
        if subject.kind == "personal":
            await self._check_companies(account_id)
        owner_id = account_id if subject.kind == "personal" else NO_USER
        async with self._db.write(account_id, owner_id) as tx:
            stopped = await self._stop(tx, subject, caller)
            found = await queries.find_erasure(tx)
        self._forget(account_id, stopped)
        if subject.kind == "personal":
            try:
                await self.leave_companies(account_id)
            except Exception as error:
                # The account has stopped. A worker tries again.
                log.warning("erasure_company_not_left", error=repr(error))
        assert found is not None
        return found

    async def _check_companies(self, user_id: UUID) -> None:
        """Refuses to leave a company without an owner."""
        for company_id in await self._companies(user_id):
            async with self._db.read(company_id, user_id) as tx:
                if await accounts.is_sole_owner(tx, user_id):
                    raise SoleOwner(await account_queries.name(tx))

    async def leave_companies(self, user_id: UUID) -> None:
        """Ends the memberships of a person whose account has stopped."""
        for company_id in await self._companies(user_id):
            with contextlib.suppress(MemberNotFound):  # Another process has just ended it.
                try:
                    await self._members.remove(company_id, user_id, by=None)
                except LastOwner:
                    await self._leave_as_last_owner(company_id, user_id)

    async def _leave_as_last_owner(self, company_id: UUID, user_id: UUID) -> None:
        """The other owners have left since the check. A company without other members is erased.
        One with other members needs an owner."""
        async with self._db.read(company_id, user_id) as tx:
            others = len(await accounts.member_ids(tx)) - 1
        company = to_wire("acct", company_id)
        if not others:
            log.warning("erasure_company_without_members", company=company)
            await self.erase(company_id)
            return
        await self._members.remove(company_id, user_id, by=None, last=True)
        log.error("company_without_owner", company=company, members=others)

    async def _companies(self, user_id: UUID) -> list[UUID]:
        async with self._db.read(user_id, user_id) as tx:
            return await accounts.company_ids(tx)

    async def _stop(
        self, tx: AccountTransaction, subject: Subject, caller: Caller | None
    ) -> _Stopped:
        stopped = _Stopped()
        now = clock.now()
        user_ids = await accounts.member_ids(tx)
        for user_id in user_ids:
            # Requests of members end first. Later ones are refused.
            await member_queries.lock_membership(tx, user_id)
        await account_queries.lock(tx)
        if (found := await accounts.subject(tx)) is None or found.erased_at is not None:
            return stopped  # Another request has done it.
        if caller is not None and membership.is_needed(tx.account_id, caller.user_id):
            member = await member_queries.find(tx, caller.user_id)
            if member is None or member.role != "owner":
                raise membership.RightEnded
        if caller is not None and (owed_micros := await credits_retention.debt_micros(tx)):
            raise MoneyOwed(owed_micros)
        # Also members who joined while this waited for the lock.
        stopped.user_ids = [*await accounts.member_ids(tx), tx.account_id]
        stopped.secret_hashes = await credentials.delete_keys(tx)
        if subject.kind == "personal":
            stopped.session_ids = await credentials.revoke_sessions(tx)
            await accounts.delete_identity(tx)
        await invitations.delete_all(tx)
        await pausing.pause_all(tx)
        await servers.delete_servers(tx)
        await journal.lock_account(tx)
        # Also schedules that were created or resumed while this waited for the lock. What is
        # changing one now finds the account closed.
        await pausing.pause_all(tx, wait=False)
        # After the lock, as changes of webhooks do it.
        for table in tables.ERASED_AT_ONCE:
            await queries.delete_all(tx, table)
        await events.close_account(tx)
        await tasks.cancel_all(tx)
        await events.drop_runs(tx)
        by = caller.user_id if caller else None
        await queries.begin_erasure(tx, subject.kind, by, now)
        await accounts.close(tx, now)
        tx.record("account.erasure_requested", {"by": to_wire("user", by) if by else None})
        tx.wakes |= {LANE}
        return stopped

    def _forget(self, account_id: UUID, stopped: _Stopped) -> None:
        for session_id in stopped.session_ids:
            self._authenticator.forget_session(account_id, session_id)
        for secret_hash in stopped.secret_hashes:
            self._authenticator.forget_key(secret_hash)
        for user_id in stopped.user_ids:
            # Live streams end, here and in all other processes.
            self._announce(account_id, user_id)
