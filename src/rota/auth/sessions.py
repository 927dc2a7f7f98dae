"""Starts a session from an ID token or a code, refreshes its token, lists the sessions and ends
them."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from rota.accounts import service as accounts
from rota.auth import queries
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.codes import Code, CodeExchange
from rota.auth.compact import BadToken
from rota.auth.erasure import revoke_sessions
from rota.auth.errors import (
    AccountBeingCreated,
    CellsDiffer,
    CodeExchanged,
    CodeUsed,
    IdentityNotHere,
    IdTokenInvalid,
    IdTokenUsed,
    SessionAccountNotFound,
    SessionInvalid,
    SessionNotFound,
)
from rota.auth.issuers import Identity, Issuers
from rota.auth.queries import Session
from rota.auth.record import Record
from rota.auth.tokens import SessionTokens
from rota.platform import clock
from rota.platform.cell import CREATE, FIND, RESERVE, Routing
from rota.platform.db import AccountTransaction, Database, UnboundTransaction
from rota.platform.ids import new_uuid, to_wire

# Longer than any code is valid: RFC 6749 recommends ten minutes at most.
CODE_MEMORY = timedelta(hours=1)
# How long the rows of a reservation stay. It lasts at least one minute, which is longer than the
# router waits for a cell that creates an account.
PLACE_MEMORY = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Client:
    """The program that signs in."""

    device: str | None
    address: str | None


class Sessions:
    def __init__(
        self,
        db: Database,
        issuers: Issuers,
        codes: CodeExchange,
        tokens: SessionTokens,
        authenticator: Authenticator,
        record: Record,
        *,
        idle_days: int,
        signup_trial: timedelta | None,
        cells: Collection[str] = (),
    ) -> None:
        self._db = db
        self._issuers = issuers
        self._codes = codes
        self._tokens = tokens
        self._authenticator = authenticator
        self._record = record
        self._idle_days = idle_days
        self._signup_trial = signup_trial
        self._cells = frozenset(cells)

    async def start(
        self, id_token: str, client: Client, *, routing: Routing | None = None
    ) -> str | None:
        """None if the router only asked, and the answer is yes. For no, it raises. In both cases,
        the ID token stays usable."""
        identity = await self._verified(id_token)
        if routing is None:
            return await self._start(identity, client)
        if routing.question == RESERVE:
            async with self._db.directory() as connection:
                if not await self._place(connection, identity):
                    raise AccountBeingCreated
            return None
        if routing.question != CREATE:
            await self._check_known(identity, routing)
        if routing.question == FIND:
            return None
        return await self._start(identity, client, creates=routing.question == CREATE)

    async def start_by_code(
        self,
        code: Code,
        nonce: str | None,
        own_origin: str,
        client: Client,
        *,
        pages_only: bool,
        routing: Routing | None = None,
    ) -> str:
        """With `routing`, the ID token goes to the router."""
        self._codes.check(code, own_origin, pages_only=pages_only)
        code_hash = hashlib.sha256(f"code {code.issuer} {code.code}".encode()).digest()
        async with self._db.directory() as connection:
            # Before the exchange, so that a code is never sent twice.
            if not await queries.use_once(connection, code_hash, clock.now() + CODE_MEMORY):
                raise CodeUsed
        id_token = await self._codes.id_token(code)
        identity = await self._verified(id_token)
        if identity.profile.issuer != code.issuer or identity.nonce != nonce:
            # The ID token belongs to another sign-in than the one that this client has started.
            raise IdTokenInvalid
        if routing is not None:
            raise CodeExchanged(id_token)
        return await self._start(identity, client)

    async def _check_known(self, identity: Identity, routing: Routing) -> None:
        async with self._db.directory() as connection:
            if await accounts.is_known(connection, identity.profile):
                return
        if routing.cells and self._cells and routing.cells != self._cells:
            raise CellsDiffer
        raise IdentityNotHere

    async def _place(self, connection: UnboundTransaction, identity: Identity) -> bool:
        """Every account begins with this in the cell that the identity itself decides. So of two
        first sign-ins that name different cells, one fails. False if the account exists."""
        profile = identity.profile
        if await accounts.is_known(connection, profile):
            return False
        minute, fresh = int(clock.now().timestamp() // 60), True
        # This minute and the next: two sign-ins within one minute have one of them in common.
        for each in (minute, minute + 1):
            text = f"place {profile.issuer} {profile.subject} {each}"
            digest = hashlib.sha256(text.encode()).digest()
            fresh &= await queries.use_once(connection, digest, clock.now() + PLACE_MEMORY)
        if fresh:
            return True
        # The other one may have been committed here while this one waited for it.
        if not await accounts.is_known(connection, profile):
            raise AccountBeingCreated
        return False

    async def _verified(self, id_token: str) -> Identity:
        try:
            return await self._issuers.verify(id_token)
        except BadToken:
            raise IdTokenInvalid from None

    async def _start(self, identity: Identity, client: Client, *, creates: bool = False) -> str:
        session_id = new_uuid()
        async with self._db.directory() as connection:
            if creates:
                await self._place(connection, identity)
            if not await queries.use_once(connection, identity.token_hash, identity.expires_at):
                raise IdTokenUsed
            tx = await accounts.sign_in(
                connection, identity.profile, identity.verified_email, self._signup_trial
            )
            await queries.create_session(
                tx,
                tx.user_id,
                session_id,
                client.device,
                client.address,
                identity.verified_email,
            )
            await self._record_event(tx, "session.created", session_id)
        return await self._tokens.issue(tx.user_id, session_id)

    async def refresh(self, token: str) -> str:
        try:
            claims = await self._tokens.verify(token, allow_expired=True)
        except BadToken:
            raise SessionInvalid from None
        async with self._db.write(claims.user_id, claims.user_id) as tx:
            if not await queries.is_session_active(
                tx, claims.user_id, claims.session_id, self._idle_days
            ):
                raise SessionInvalid
            if await queries.personal_access(tx, claims.user_id) is None:
                raise SessionAccountNotFound
            await queries.record_refresh(tx, claims.user_id, claims.session_id)
            tx.record("session.refreshed", {}, to_wire("sess", claims.session_id))
        return await self._tokens.issue(claims.user_id, claims.session_id)

    async def all(self, caller: Caller) -> list[Session]:
        """The sessions of the caller's user, whichever account is selected."""
        async with self._db.read(caller.user_id, caller.user_id) as tx:
            return await queries.active_sessions(tx, caller.user_id, self._idle_days)

    async def end(self, caller: Caller) -> None:
        assert caller.session_id is not None
        await self._revoke(caller.user_id, caller.session_id)

    async def delete(self, caller: Caller, session_id: UUID | None) -> None:
        if session_id is None or not await self._revoke(caller.user_id, session_id):
            raise SessionNotFound

    async def end_all(self, user_id: UUID) -> int:
        """Ends the sessions of a user for a command of the operator. How many there were."""
        async with self._db.write(user_id, user_id) as tx:
            if await queries.personal_access(tx, user_id) is None:
                raise accounts.AccountNotFound(user_id)
            revoked = await revoke_sessions(tx)
            for session_id in revoked:
                data = {"sessionId": to_wire("sess", session_id), "by": None}
                await self._record(tx, "session.revoked", data)
        for session_id in revoked:
            self._authenticator.forget_session(user_id, session_id)
        return len(revoked)

    async def _revoke(self, user_id: UUID, session_id: UUID) -> bool:
        """Whether the session was active before."""
        async with self._db.write(user_id, user_id) as tx:
            revoked = await queries.revoke_session(tx, user_id, session_id)
            if revoked:
                await self._record_event(tx, "session.revoked", session_id)
        self._authenticator.forget_session(user_id, session_id)
        return revoked

    async def _record_event(self, tx: AccountTransaction, kind: str, session_id: UUID) -> None:
        """Session events belong to the user's personal account."""
        data = {"sessionId": to_wire("sess", session_id), "by": to_wire("user", tx.user_id)}
        await self._record(tx, kind, data)
