"""Finds the Caller of a request from its headers.

Each process caches callers for half a second, and credentials that are no longer valid as well. A
busy credential then costs two database lookups per second, and a revocation takes effect in every
process within a second without messages between processes. Requests that need the same lookup at
the same time share it.
"""

from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from rota.auth import queries, secrets
from rota.auth.caller import Caller
from rota.auth.compact import BadToken
from rota.auth.errors import (
    ApiKeyInvalid,
    AuthorizationMalformed,
    KeyOfAnotherAccount,
    SessionTokenInvalid,
)
from rota.auth.key_lookup import KeyLookup
from rota.auth.queries import AccountAccess, KeyOwner, SessionAccess
from rota.auth.selection import Callers, selects, selects_company
from rota.auth.tokens import SessionClaims, SessionTokens
from rota.platform import cell
from rota.platform.cache import ExpiringCache, RecentCalls, SharedCalls
from rota.platform.db import AccountReader, Database
from rota.platform.errors import AuthenticationFailed
from rota.platform.membership import MembershipEnded

CACHE_S = 0.5


class Authenticator:
    def __init__(
        self, db: Database, tokens: SessionTokens, *, idle_days: int, cell: str | None = None
    ) -> None:
        self._db = db
        self._tokens = tokens
        self._idle_days = idle_days
        self._cell = cell
        # The key includes the user, because a session is valid only for its own user. The callers
        # are stored without and with the companies of the user, which most requests do not need.
        self._sessions: ExpiringCache[tuple[UUID, UUID], dict[bool, Callers]] = ExpiringCache(
            max_items=10_000, max_age_s=CACHE_S
        )
        self._keys: ExpiringCache[bytes, Caller] = ExpiringCache(
            max_items=10_000, max_age_s=CACHE_S
        )
        # Keys and sessions that are not valid. None of them becomes valid by itself.
        self._refused: ExpiringCache[bytes | tuple[UUID, UUID], bool] = ExpiringCache(
            max_items=10_000, max_age_s=CACHE_S
        )
        self._key_lookup = KeyLookup(db)
        self._loading_keys: SharedCalls[bytes, Caller | None] = SharedCalls()
        self._loading_sessions: SharedCalls[tuple[UUID, UUID, bool], Callers | None] = SharedCalls()
        # Look-ups of event streams, which the streams of a credential share. A refused credential
        # is remembered for as long, so no look-up from before makes it valid again.
        self._recent_keys: RecentCalls[bytes, Caller | None] = RecentCalls(
            max_items=10_000, max_age_s=CACHE_S
        )
        self._recent_sessions: RecentCalls[tuple[UUID, UUID, bool], Callers | None] = RecentCalls(
            max_items=10_000, max_age_s=CACHE_S
        )

    async def authenticate(
        self,
        authorization: str | None,
        selection: str | None,
        address: str | None = None,
        *,
        since: float | None = None,
    ) -> Caller:
        """The caller. `address` is the client's, which limits what failed look-ups cost. With
        `since`, a moment of the monotonic clock, no result of an earlier look-up is used."""
        token = bearer_token(authorization)
        if token.startswith(secrets.PREFIX):
            caller = await self._by_key(token, address, since)
            if selection is not None and not selects(
                selection, caller.account_id, caller.account_kind
            ):
                raise KeyOfAnotherAccount(caller)
            return caller
        return await self._by_session(token, selection, since)

    async def authenticate_again(
        self, caller: Caller, authorization: str | None, selection: str | None
    ) -> Caller:
        """The caller of a request that still runs, as the credential says now."""
        found = await self.authenticate(authorization, selection)
        # `X-Service-Account: company` can select another company after a removal.
        if found.account_id != caller.account_id:
            raise MembershipEnded
        return found

    def forget_session(self, user_id: UUID, session_id: UUID) -> None:
        """Refuses an ended session immediately, also in requests that look it up now."""
        self._sessions.drop((user_id, session_id))
        self._refused.put((user_id, session_id), True)

    def forget_key(self, secret_hash: bytes) -> None:
        """Refuses a deleted key immediately, also in requests that look it up now."""
        self._keys.drop(secret_hash)
        self._refused.put(secret_hash, True)

    def forget_member(self, account_id: UUID, user_id: UUID) -> None:
        """Looks up the user's access to the account again in the next request."""
        self._sessions.drop_where(lambda session, _: session[0] == user_id)
        self._keys.drop_where(
            lambda _, caller: (caller.account_id, caller.user_id) == (account_id, user_id)
        )

    async def _by_session(self, token: str, selection: str | None, since: float | None) -> Caller:
        try:
            claims = await self._tokens.verify(token)
        except BadToken:
            raise SessionTokenInvalid from None
        session = (claims.user_id, claims.session_id)
        if self._refused.get(session):
            raise SessionTokenInvalid
        companies = selects_company(selection, claims.user_id)
        cached = self._sessions.get(session)
        if cached is None:
            cached = {}
            self._sessions.put(session, cached)
        callers = cached.get(companies) if since is None else None
        if callers is None:

            def load() -> Coroutine[Any, Any, Callers | None]:
                return self._load_session_callers(claims, companies)

            key = (*session, companies)
            if since is None:
                callers = await self._loading_sessions.run(key, load)
            else:
                callers = await self._recent_sessions.run(key, since, load)
            if callers is None or self._refused.get(session):
                raise SessionTokenInvalid
            if since is None:
                # A look-up that streams share can be older than this one.
                cached[companies] = callers
        return callers.select(selection)

    async def _load_session_callers(self, claims: SessionClaims, companies: bool) -> Callers | None:
        """None if the session has ended."""
        user_id = claims.user_id
        async with self._db.read(user_id, user_id) as tx:
            found = await self._find_session(tx, claims, companies)
        if found is not None and found[0].record_use:
            async with self._db.write(user_id, user_id) as tx:
                await queries.record_seen(tx, user_id, claims.session_id)
                # This may have waited, and the session has ended.
                found = await self._find_session(tx, claims, companies)
        if found is None:
            self._refused.put((user_id, claims.session_id), True)
            return None

        def caller(account: AccountAccess) -> Caller:
            return caller_with(user_id, account, scopes=None, session_id=claims.session_id)

        session, accounts = found
        return Callers(caller(session.personal), tuple(caller(each) for each in accounts))

    async def _find_session(
        self, tx: AccountReader, claims: SessionClaims, companies: bool
    ) -> tuple[SessionAccess, list[AccountAccess]] | None:
        found = await queries.session_access(tx, claims.user_id, claims.session_id, self._idle_days)
        if found is None:
            return None
        return found, await queries.company_access(tx, claims.user_id) if companies else []

    async def _by_key(self, secret: str, address: str | None, since: float | None) -> Caller:
        named = secrets.cell_of(secret)
        if not secrets.is_well_formed(secret) or (named is not None and self._cell is None):
            raise ApiKeyInvalid
        cell.check("The API key", named, self._cell)
        secret_hash = secrets.hash_of(secret)
        caller = self._keys.get(secret_hash)
        if caller is not None and since is None:
            return caller
        if self._refused.get(secret_hash):
            raise ApiKeyInvalid

        def load() -> Coroutine[Any, Any, Caller | None]:
            return self._load_key_caller(secret_hash, address)

        if since is None:
            caller = await self._loading_keys.run(secret_hash, load)
        else:
            caller = await self._recent_keys.run(secret_hash, since, load)
        if caller is None:
            raise ApiKeyInvalid
        return caller

    async def _load_key_caller(self, secret_hash: bytes, address: str | None) -> Caller | None:
        owner = await self._key_lookup.owner(secret_hash, address)
        caller = await self._caller_of(owner) if owner is not None else None
        if owner is None or caller is None or self._refused.get(secret_hash):
            self._refused.put(secret_hash, True)
            return None
        self._key_lookup.succeeded(secret_hash, owner, address)
        self._keys.put(secret_hash, caller)
        return caller

    async def _caller_of(self, owner: KeyOwner) -> Caller | None:
        """None if the key is expired, or its creator has left the account."""
        async with self._db.read(owner.account_id, owner.user_id) as tx:
            access = await queries.key_access(tx, owner)
        if access is not None and access.record_use:
            async with self._db.write(owner.account_id, owner.user_id, check_member=False) as tx:
                await queries.record_key_use(tx, owner.key_id)
                # This may have waited, and the key is gone.
                access = await queries.key_access(tx, owner)
        if access is None:
            return None
        return caller_with(owner.user_id, access.account, scopes=access.scopes, key_id=owner.key_id)


def bearer_token(authorization: str | None) -> str:
    if authorization is None:
        raise AuthenticationFailed.missing()
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise AuthorizationMalformed
    return token


def caller_with(
    user_id: UUID,
    access: AccountAccess,
    *,
    scopes: frozenset[str] | None,
    session_id: UUID | None = None,
    key_id: UUID | None = None,
    token: str | None = None,
) -> Caller:
    return Caller(
        user_id=user_id,
        account_id=access.account_id,
        account_kind=access.kind,
        role=access.role,
        tier=access.tier,
        user_tier=access.user_tier,
        scopes=scopes,
        session_id=session_id,
        key_id=key_id,
        token=token,
        approver=access.approver,
    )
