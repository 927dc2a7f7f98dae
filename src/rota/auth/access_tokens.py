"""The credentials of programs that speak MCP or A2A: API keys, and access tokens of issuers.

An access token names this service's endpoint as its audience. It acts for the user who signed in
with the same identity, and never approves: what approves needs a session, or a key whose scopes
say so. Like those, it is looked up again after half a second.
"""

import time
from collections.abc import Awaitable, Callable

from starlette.requests import Request

from rota.accounts import queries as accounts
from rota.auth import compact, queries, secrets
from rota.auth.authenticator import CACHE_S, Authenticator, bearer_token, caller_with
from rota.auth.caller import Caller, Scope
from rota.auth.compact import BadToken
from rota.auth.errors import (
    AccessTokenBound,
    AccessTokenInvalid,
    AccessTokenUnknownUser,
    IdentityNotHere,
    KeyCanApprove,
    SessionNotForPrograms,
)
from rota.auth.issuers import AccessGrant, Issuers, SenderConstrained
from rota.auth.queries import AccountAccess
from rota.auth.routing import AUTHORIZATION, allowed
from rota.auth.selection import Callers
from rota.auth.tokens import TYPE as SESSION_TYPE
from rota.platform.cache import ExpiringCache
from rota.platform.db import Database
from rota.platform.errors import ApiError

# What a program can do here at most, with any credential.
SCOPES: tuple[Scope, ...] = ("tasks:read", "tasks:write", "agents:read")


class AccessTokens:
    """Finds the Caller of a request to an endpoint for programs."""

    def __init__(
        self,
        db: Database,
        authenticator: Authenticator,
        issuers: Issuers,
        audience: str,
        cell: str | None,
    ) -> None:
        self._db = db
        self._authenticator = authenticator
        self._issuers = issuers
        # The URL of the endpoint.
        self.audience = audience
        # What a user without an account means: in a cell, another one may have it.
        self._unknown = AccessTokenUnknownUser if cell is None else IdentityNotHere
        # By the token, without and with the companies of its user. None if there is no user.
        self._callers: ExpiringCache[tuple[str, bool], tuple[Callers | None, float]] = (
            ExpiringCache(max_items=10_000, max_age_s=CACHE_S)
        )

    async def authenticate(
        self,
        authorization: str | None,
        selection: str | None,
        address: str | None = None,
        *,
        since: float | None = None,
    ) -> Caller:
        """As the Authenticator does. It also finds callers that `check_program` refuses, so that
        their requests count toward their account."""
        text = bearer_token(authorization)
        if text.startswith(secrets.PREFIX) or _is_session_token(text):
            return await self._authenticator.authenticate(
                authorization, selection, address, since=since
            )
        companies = selection is not None
        known = self._callers.get((text, companies)) if since is None else None
        if known is None or known[1] <= time.time():
            try:
                grant = await self._issuers.verify_access(text, self.audience)
            except SenderConstrained:
                raise AccessTokenBound from None
            except BadToken:
                raise AccessTokenInvalid(self.audience) from None
            known = await self._find(grant, selection), grant.expires_at
            self._callers.put((text, companies), known)
        callers = known[0]
        if callers is None:
            raise self._unknown
        return callers.select(selection)

    async def _find(self, grant: AccessGrant, selection: str | None) -> Callers | None:
        """None if the service has no user with the token's identity."""
        async with self._db.directory() as connection:
            user_id = await accounts.user_of_identity(connection, grant.issuer, grant.subject)
        if user_id is None:
            return None
        async with self._db.read(user_id, user_id) as tx:
            personal = await queries.personal_access(tx, user_id)
            if personal is None:
                raise AccessTokenUnknownUser
            companies = await queries.company_access(tx, user_id) if selection is not None else []
        # A token that names scopes has only those of this service, perhaps none.
        allowed = frozenset(SCOPES)
        scopes = allowed if grant.scopes is None else allowed & grant.scopes

        token = f"token_{grant.digest[:32]}"

        def caller(account: AccountAccess) -> Caller:
            return caller_with(personal.account_id, account, scopes=scopes, token=token)

        return Callers(caller(personal), tuple(caller(each) for each in companies))


def check_program(caller: Caller, path: str) -> Caller:
    """Refuses callers who can approve: a program must not."""
    if caller.session_id is not None:
        raise SessionNotForPrograms(path)
    if caller.key_id is not None and caller.has_scope("tasks:approve"):
        raise KeyCanApprove(path)
    return caller


def still_allowed(
    credentials: AccessTokens, request: Request, path: str, before: Caller, needs: allowed
) -> Callable[[float | None], Awaitable[bool]]:
    """A function for a request that waits: whether its credential can still do this in the same
    account. With a moment, no look-up from before it counts."""

    async def check(since: float | None) -> bool:
        try:
            caller = await credentials.authenticate(
                request.scope.get(AUTHORIZATION),
                request.headers.get("x-service-account"),
                since=since,
            )
            needs.check(check_program(caller, path))
        except ApiError as error:
            if error.is_about_service:
                raise
            return False
        return caller.account_id == before.account_id

    return check


def _is_session_token(text: str) -> bool:
    try:
        return compact.parse(text).header.get("typ") == SESSION_TYPE
    except BadToken:
        return False
