"""Invites people to a company by email address.

The link contains a token with 256 random bits, of which only the hash is stored. The token also
contains the account, so no table outside of row security has to find it.
"""

import hashlib
import re
import secrets
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from rota.accounts import members as member_queries
from rota.accounts import queries as accounts
from rota.accounts.addresses import normalized
from rota.accounts.model import Member
from rota.accounts.service import add_member, check_free_seat
from rota.auth import verified_emails
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.companies import queries, schemas
from rota.companies.errors import (
    AddressNotVerified,
    AddressOfMember,
    AlreadyInvited,
    AlreadyMember,
    AlwaysApprover,
    InvitationNotFound,
    InvitationOfAnotherCell,
    OwnerRequired,
    TooManyInvitations,
)
from rota.companies.invitation_schemas import CreateInvitation, InvitedResponse, ReceivedInvitation
from rota.companies.invitation_schemas import Invitation as ShownInvitation
from rota.companies.members import manager, record
from rota.companies.queries import Invitation
from rota.companies.schemas import CompanyResponse
from rota.companies.service import read
from rota.events import journal
from rota.platform import clock
from rota.platform.cell import NAME
from rota.platform.db import AccountReader, AccountTransaction, Database, bind_account
from rota.platform.idempotency import Idempotency, Outcome
from rota.platform.ids import new_uuid, to_wire

LIFETIME = timedelta(days=7)
MAX_OPEN = 1_000
OPERATION = "POST /api/companies/{id}/invitations"

# A cell puts its name before the account.
_TOKEN = re.compile(rf"invite_(?:({NAME})_)?([0-9a-f]{{32}})_[A-Za-z0-9_-]{{43}}")


class Invitations:
    def __init__(
        self,
        db: Database,
        authenticator: Authenticator,
        idempotency: Idempotency,
        *,
        public_url: str,
        cell: str | None = None,
    ) -> None:
        self._db = db
        self._authenticator = authenticator
        self._idempotency = idempotency
        self._public_url = public_url.rstrip("/")
        self._cell = cell

    async def create(self, caller: Caller, body: CreateInvitation, key: str | None) -> Outcome:
        """Only this response contains the link."""
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            return await self._idempotency.once(
                tx, key, (OPERATION, body), 201, lambda: self._create(tx, caller, body)
            )

    async def _create(
        self, tx: AccountTransaction, caller: Caller, body: CreateInvitation
    ) -> InvitedResponse:
        await accounts.lock_company(tx)
        if (await manager(tx, caller)).role != "owner" and body.role == "owner":
            raise OwnerRequired
        if body.role != "member" and "approver" in body.model_fields_set and not body.approver:
            raise AlwaysApprover
        check_free_seat(await member_queries.seats(tx))
        now = clock.now()
        await queries.delete_expired(tx, now)
        if await queries.count(tx, now) >= MAX_OPEN:
            raise TooManyInvitations(MAX_OPEN)
        email = normalized(body.email)
        if await member_queries.has_address(tx, email):
            raise AddressOfMember(email)
        start = "invite" if self._cell is None else f"invite_{self._cell}"
        token = f"{start}_{tx.account_id.hex}_{secrets.token_urlsafe(32)}"
        invitation = Invitation(
            id=new_uuid(),
            email=email,
            role=body.role,
            approver=body.approver or body.role != "member",
            created_by=caller.user_id,
            created_at=now,
            expires_at=now + LIFETIME,
        )
        if not await queries.insert(tx, invitation, _hash_of(token)):
            raise AlreadyInvited(email)
        await _record(tx, "invitation.created", invitation.id, caller)
        return InvitedResponse(
            invitation=ShownInvitation.of(invitation),
            # Browsers do not send what follows #, so the token is in no log of a server.
            url=f"{self._public_url}/invitation#{token}",
        )

    async def page(self, caller: Caller, limit: int, offset: int) -> tuple[list[Invitation], int]:
        now = clock.now()
        async with self._db.snapshot(caller.account_id, caller.user_id) as tx:
            return await queries.page(tx, now, limit, offset), await queries.count(tx, now)

    async def delete(self, caller: Caller, invitation_id: UUID | None) -> None:
        async with self._db.write(caller.account_id, caller.user_id, right=caller.right) as tx:
            await manager(tx, caller)
            if invitation_id is None or not await queries.delete(tx, invitation_id):
                raise InvitationNotFound
            await _record(tx, "invitation.deleted", invitation_id, caller)

    async def received(self, caller: Caller, token: str) -> ReceivedInvitation:
        """What the person who has the link is invited to. It does not contain the address: the link
        may have reached somebody else."""
        account_id, user_id = self._account_of(token), caller.user_id
        async with self._db.write(user_id, user_id) as own:
            company = await bind_account(own, account_id, user_id)
            invitation = await _find(company, token)
            creator = await _creator(company, invitation)
            name = await accounts.name(company)
        return ReceivedInvitation(
            account_id=to_wire("acct", account_id),
            account_name=name,
            role=invitation.role,
            approver=invitation.approver,
            invited_by=creator.name,
            expires_at=invitation.expires_at,
        )

    async def accept(self, caller: Caller, token: str, key: str | None) -> Outcome:
        """Makes the caller's user a member. The invitation works once."""
        account_id, user_id = self._account_of(token), caller.user_id
        request = (f"accept {_hash_of(token).hex()}", None)
        # Anyone can invent a token. So it is looked up with a connection of the caller's own share,
        # and a company is locked only for a token that it has issued.
        async with self._db.write(user_id, user_id) as own:
            company = await bind_account(own, account_id, user_id)
            if await self._idempotency.stored(company, key, request) is None:
                await _find_for(company, token, user_id)
        try:
            async with self._db.write(account_id, user_id, check_member=False) as tx:
                outcome = await self._idempotency.once(
                    tx, key, request, 200, lambda: self._accept(tx, caller, token)
                )
                if outcome.replayed and not await member_queries.is_member(tx, user_id):
                    raise InvitationNotFound
        except AlreadyMember:
            with suppress(InvitationNotFound):
                await self._discard(caller, account_id, token)
            raise
        self._authenticator.forget_member(account_id, user_id)
        return outcome

    def _account_of(self, token: str) -> UUID:
        match = _TOKEN.fullmatch(token)
        if match is None or (match[1] is not None and self._cell is None):
            raise InvitationNotFound
        if match[1] not in (None, self._cell):
            raise InvitationOfAnotherCell(match[1])
        return UUID(hex=match[2])

    async def _discard(self, caller: Caller, account_id: UUID, token: str) -> None:
        """Deletes an invitation that a member has tried to accept: it must not work later."""
        async with self._db.write(account_id, caller.user_id) as tx:
            invitation = await _find(tx, token)
            await queries.delete(tx, invitation.id)
            await _record(tx, "invitation.deleted", invitation.id, caller)

    async def _accept(self, tx: AccountTransaction, caller: Caller, token: str) -> CompanyResponse:
        await accounts.lock_company(tx)
        invitation = await _find_for(tx, token, caller.user_id)
        await _creator(tx, invitation)
        assert caller.session_id is not None
        email = await verified_emails.of_session(tx, caller.user_id, caller.session_id)
        if email is None or email != invitation.email:
            raise AddressNotVerified(email)
        if await member_queries.is_member(tx, caller.user_id):
            raise AlreadyMember
        await add_member(tx, caller.user_id, invitation.role, invitation.approver)
        await queries.delete(tx, invitation.id)
        await record(
            tx,
            "member.added",
            caller.user_id,
            invitation.created_by,
            role=invitation.role,
            approver=invitation.approver,
            invitationId=to_wire("inv", invitation.id),
        )
        joined = await read(tx)
        return CompanyResponse(account=schemas.Company.of(joined.account, joined.seats))


async def _find(tx: AccountReader, token: str) -> Invitation:
    found = await queries.find_by_token(tx, _hash_of(token), clock.now())
    if found is None:
        raise InvitationNotFound
    return found


async def _find_for(tx: AccountReader, token: str, user_id: UUID) -> Invitation:
    """The invitation that this user accepts. A member has perhaps just accepted it."""
    try:
        return await _find(tx, token)
    except InvitationNotFound:
        if await member_queries.find(tx, user_id) is not None:
            raise AlreadyMember from None
        raise


async def _creator(tx: AccountReader, invitation: Invitation) -> Member:
    """The member who created it. It does not work if that member could not create it now."""
    by = await member_queries.find(tx, invitation.created_by)
    if by is None or by.role == "member" or (by.role != "owner" and invitation.role == "owner"):
        raise InvitationNotFound
    return by


def _hash_of(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


async def _record(tx: AccountTransaction, kind: str, invitation_id: UUID, caller: Caller) -> None:
    data = {
        "invitationId": to_wire("inv", invitation_id),
        "by": to_wire("user", caller.user_id),
    }
    await journal.append(tx, kind, data)
