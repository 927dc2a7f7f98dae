"""Routers for authenticated and for public routes.

A secured router refuses unauthenticated requests before it reads the body. Its endpoints declare
the scope of API keys, the right of members and the kind of credential that they need.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.types import Scope as AsgiScope

from rota.auth.caller import Caller, Scope
from rota.auth.errors import (
    AdminRequired,
    ApproverRequired,
    OwnerRequired,
    PersonalRequired,
    ScopeMissing,
    SelectionRefused,
    SessionRequired,
)
from rota.auth.rights import ACTIONS, Right
from rota.platform.errors import ApiError, AuthenticationFailed
from rota.platform.http.description import documented
from rota.platform.http.routes import Route, by_name

# The request guard stores the Caller here, or the error of the authentication.
CALLER = "rota.caller"
# Here the value of the Authorization header, or what the session cookie stands for.
AUTHORIZATION = "rota.authorization"
# And here the address of the client, as trusted proxies report it.
ADDRESS = "rota.address"
# Here when the Caller was found, and a function that finds it again.
RENEWAL = "rota.renewal"
# The body can arrive much later than the headers. Together with the age of a cached Caller, this
# stays below a second.
RENEW_AFTER_S = 0.4


def caller_of(scope: AsgiScope) -> Caller:
    caller = scope.get(CALLER)
    if isinstance(caller, Caller):
        return caller
    raise caller if isinstance(caller, ApiError) else AuthenticationFailed.missing()


Renew = Callable[[AsgiScope], Awaitable[Caller | ApiError]]


async def renewed_caller(scope: AsgiScope) -> Caller:
    """The caller after the body was read. If that took long, it is looked up again: the user may
    have left the company meanwhile, or have another role."""
    since: float
    renew: Renew
    since, renew = scope[RENEWAL]
    if time.monotonic() - since > RENEW_AFTER_S:
        scope[CALLER] = await renew(scope)
    return caller_of(scope)


class SecuredRoute(Route):
    def admit(self, scope: AsgiScope) -> None:
        caller_of(scope)


class UserRoute(SecuredRoute):
    """A route that does not need the selected account: it is about the user alone, or its path
    names the account. X-Service-Account may name an account that the user has lost."""

    def admit(self, scope: AsgiScope) -> None:
        if isinstance(refused := scope.get(CALLER), SelectionRefused):
            scope[CALLER] = refused.caller
        super().admit(scope)


def secured_router(tag: str, route_class: type[SecuredRoute] = SecuredRoute) -> APIRouter:
    return APIRouter(
        route_class=route_class,
        tags=[tag],
        responses=documented(401, 403),
        generate_unique_id_function=by_name,
    )


def public_router(tag: str) -> APIRouter:
    return APIRouter(route_class=Route, tags=[tag], generate_unique_id_function=by_name)


class allowed:  # noqa: N801
    """A dependency: the Caller, if it can use the route. The description and the table of routes
    and roles read here what the route needs."""

    def __init__(
        self,
        *scopes: Scope,
        right: Right | None = None,
        session: bool = False,
        personal: bool = False,
        account: bool = True,
        own: bool = False,
    ) -> None:
        # The scopes that an API key needs.
        self.scopes = scopes
        # The right that a member of a company needs.
        self.right = right
        # Whether API keys are refused, and whether companies are.
        self.session = session
        self.personal = personal
        # Whether it is about the selected account. Otherwise it is about the user alone, and works
        # without a membership.
        self.account = account
        # Whether a member without the right can use the route for their own membership.
        self.own = own

    @property
    def rule(self) -> str:
        """For the description of the route."""
        rules = ["Needs a session token."] if self.session else []
        if self.right is not None:
            who = {"approve": "approvers", "data": "owners"}.get(self.right, "owners and admins")
            itself = ", and members for their own membership" if self.own else ""
            rules.append(f"In a company, only {who}{itself} can use it.")
        return " ".join(rules)

    async def __call__(self, request: Request) -> Caller:
        return self.check(await renewed_caller(request.scope))

    def check(self, caller: Caller) -> Caller:
        if self.session and caller.session_id is None:
            raise SessionRequired
        for scope in self.scopes:
            if not caller.has_scope(scope):
                raise ScopeMissing(scope, caller)
        if self.personal and caller.account_kind != "personal":
            raise PersonalRequired
        if self.right is not None and not caller.has_right(self.right):
            if self.right == "data":
                raise OwnerRequired
            raise AdminRequired(action) if (action := ACTIONS.get(self.right)) else ApproverRequired
        return replace(caller, right=self.right) if self.right is not None else caller


# For routes about the user, whichever account is selected.
AnyCaller = Annotated[Caller, Depends(allowed(account=False))]
SessionCaller = Annotated[Caller, Depends(allowed(session=True, account=False))]
