"""Starts a session from an ID token, refreshes its token, lists the sessions and ends them."""

from datetime import timedelta
from uuid import UUID

from rota.accounts import service as accounts
from rota.auth import queries
from rota.auth.authenticator import Authenticator
from rota.auth.caller import Caller
from rota.auth.compact import BadToken
from rota.auth.errors import (
    IdTokenInvalid,
    IdTokenUsed,
    SessionAccountNotFound,
    SessionInvalid,
    SessionNotFound,
)
from rota.auth.issuers import Issuers
from rota.auth.queries import Session
from rota.auth.record import Record
from rota.auth.tokens import SessionTokens
from rota.platform.db import AccountTransaction, Database
from rota.platform.ids import new_uuid, to_wire


class Sessions:
    def __init__(
        self,
        db: Database,
        issuers: Issuers,
        tokens: SessionTokens,
        authenticator: Authenticator,
        record: Record,
        *,
        idle_days: int,
        signup_trial: timedelta | None,
    ) -> None:
        self._db = db
        self._issuers = issuers
        self._tokens = tokens
        self._authenticator = authenticator
        self._record = record
        self._idle_days = idle_days
        self._signup_trial = signup_trial

    async def start(self, id_token: str, device: str | None, address: str | None) -> str:
        try:
            identity = await self._issuers.verify(id_token)
        except BadToken:
            raise IdTokenInvalid from None
        session_id = new_uuid()
        async with self._db.directory() as connection:
            if not await queries.use_id_token(connection, identity.token_hash, identity.expires_at):
                raise IdTokenUsed
            tx = await accounts.sign_in(connection, identity.profile, self._signup_trial)
            await queries.create_session(tx, tx.user_id, session_id, device, address)
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
