"""From the headers of a request to its Caller.

Answers are kept for half a second per process, so that a busy caller costs
the database two look-ups a second and a revocation takes hold within one
second everywhere, with no message that could get lost.
"""

from uuid import UUID

from rota.auth import queries, secrets
from rota.auth.caller import Caller
from rota.auth.compact import BadToken
from rota.auth.queries import Standing
from rota.auth.tokens import SessionClaims, SessionTokens
from rota.platform import ids
from rota.platform.cache import ExpiringCache
from rota.platform.db import Database, ReadConnection
from rota.platform.errors import AuthenticationFailed, Forbidden

REMEMBER_S = 0.5

_BAD_SCHEME = "The Authorization header must be: Bearer <API key or session token>."
_BAD_KEY = "The API key is not valid: unknown, revoked or expired."
_BAD_TOKEN = (
    "The session token is not valid: expired, revoked or not ours. "
    "Renew it with POST /api/auth/refresh or sign in again."
)
NOT_YOURS = (
    "You do not belong to the account that X-Service-Account selects. GET /api/me lists yours."
)


class Authenticator:
    def __init__(self, db: Database, tokens: SessionTokens, *, idle_days: int) -> None:
        self._db = db
        self._tokens = tokens
        self._idle_days = idle_days
        # By user and session: a session is nobody's but its user's.
        self._sessions: ExpiringCache[tuple[UUID, UUID], dict[str | None, Caller]] = ExpiringCache(
            max_items=10_000, max_age_s=REMEMBER_S
        )
        self._keys: ExpiringCache[bytes, Caller] = ExpiringCache(
            max_items=10_000, max_age_s=REMEMBER_S
        )

    async def authenticate(self, authorization: str | None, selection: str | None) -> Caller:
        token = bearer(authorization)
        if token.startswith(secrets.PREFIX):
            caller = await self._by_key(token)
            if selection is not None and not _names(
                selection, caller.account_id, caller.account_kind
            ):
                raise Forbidden("This API key belongs to another account than X-Service-Account.")
            return caller
        return await self._by_session(token, selection)

    def forget_session(self, user_id: UUID, session_id: UUID) -> None:
        self._sessions.drop((user_id, session_id))

    def forget_key(self, secret_hash: bytes) -> None:
        self._keys.drop(secret_hash)

    async def _by_session(self, token: str, selection: str | None) -> Caller:
        try:
            claims = await self._tokens.verify(token)
        except BadToken:
            raise AuthenticationFailed(_BAD_TOKEN) from None
        session = (claims.user_id, claims.session_id)
        callers = self._sessions.get(session)
        if callers is None:
            callers = {}
            self._sessions.put(session, callers)
        caller = callers.get(selection)
        if caller is None:
            caller = await self._look_up(claims, selection)
            callers[selection] = caller
        return caller

    async def _look_up(self, claims: SessionClaims, selection: str | None) -> Caller:
        user_id = claims.user_id
        async with self._db.read(user_id, user_id) as tx:
            standing = await queries.session_standing(
                tx, user_id, claims.session_id, self._idle_days
            )
            if standing is None:
                raise AuthenticationFailed(_BAD_TOKEN)
            if selection is not None and not _names(selection, user_id, "personal"):
                standing = await _selected_company(tx, user_id, selection)
        return _caller(user_id, standing, scopes=None, session_id=claims.session_id)

    async def _by_key(self, secret: str) -> Caller:
        if not secrets.is_well_formed(secret):
            raise AuthenticationFailed(_BAD_KEY)
        secret_hash = secrets.hash_of(secret)
        caller = self._keys.get(secret_hash)
        if caller is None:
            caller = await self._look_up_key(secret_hash)
            self._keys.put(secret_hash, caller)
        return caller

    async def _look_up_key(self, secret_hash: bytes) -> Caller:
        async with self._db.directory() as connection:
            owner = await queries.owner_of_key(connection, secret_hash)
        if owner is None:
            raise AuthenticationFailed(_BAD_KEY)
        async with self._db.write(owner.account_id, owner.user_id) as tx:
            scopes = await queries.key_scopes(tx, owner.key_id)
            if owner.account_id == owner.user_id:
                standing = await queries.personal_standing(tx, owner.user_id)
            else:
                # A key does not outlive its maker's membership.
                companies = await queries.company_standings(tx, owner.user_id)
                standing = next((c for c in companies if c.account_id == owner.account_id), None)
        if scopes is None or standing is None:
            raise AuthenticationFailed(_BAD_KEY)
        return _caller(owner.user_id, standing, scopes=frozenset(scopes), session_id=None)


def bearer(authorization: str | None) -> str:
    if authorization is None:
        raise AuthenticationFailed.missing()
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise AuthenticationFailed(_BAD_SCHEME)
    return token


def _names(selection: str, account_id: UUID, kind: str) -> bool:
    return selection == kind or selection == ids.to_wire("acct", account_id)


async def _selected_company(connection: ReadConnection, user_id: UUID, selection: str) -> Standing:
    companies = await queries.company_standings(connection, user_id)
    matching = [c for c in companies if _names(selection, c.account_id, "company")]
    if len(matching) > 1:
        raise Forbidden(
            "You belong to several companies. Name one by its id in X-Service-Account; "
            "GET /api/me lists them."
        )
    if not matching:
        raise Forbidden(NOT_YOURS)
    return matching[0]


def _caller(
    user_id: UUID, standing: Standing, *, scopes: frozenset[str] | None, session_id: UUID | None
) -> Caller:
    return Caller(
        user_id,
        standing.account_id,
        standing.kind,
        standing.role,
        standing.tier,
        standing.user_tier,
        scopes,
        session_id,
    )
