"""Routers for authenticated and for public routes.

A secured router refuses unauthenticated requests before it reads the body. Its endpoints declare
the scope that they need.
"""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope as AsgiScope

from rota.auth.caller import Caller, Scope
from rota.auth.errors import SessionRequired
from rota.platform.errors import ApiError, AuthenticationFailed, Forbidden
from rota.platform.http.description import documented
from rota.platform.http.routes import Handler, Route, by_name

# The request guard stores the Caller here, or the error of the authentication.
CALLER = "rota.caller"
# Here the value of the Authorization header, or what the session cookie stands for.
AUTHORIZATION = "rota.authorization"
# And here the address of the client, as trusted proxies report it.
ADDRESS = "rota.address"


def caller_of(scope: AsgiScope) -> Caller:
    caller = scope.get(CALLER)
    if isinstance(caller, Caller):
        return caller
    raise caller if isinstance(caller, ApiError) else AuthenticationFailed.missing()


class SecuredRoute(Route):
    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def secured(request: Request) -> Response:
            caller_of(request.scope)
            return await handle(request)

        return secured


def secured_router(tag: str, route_class: type[SecuredRoute] = SecuredRoute) -> APIRouter:
    return APIRouter(
        route_class=route_class,
        tags=[tag],
        responses=documented(401, 403),
        generate_unique_id_function=by_name,
    )


def public_router(tag: str) -> APIRouter:
    return APIRouter(route_class=Route, tags=[tag], generate_unique_id_function=by_name)


async def _any_caller(request: Request) -> Caller:
    return caller_of(request.scope)


async def _session(request: Request) -> Caller:
    caller = caller_of(request.scope)
    if caller.session_id is None:
        raise SessionRequired
    return caller


class allowed:  # noqa: N801
    """A dependency: the Caller, if it has these scopes. The description reads the scopes here."""

    def __init__(self, *scopes: Scope) -> None:
        self.scopes = scopes

    async def __call__(self, request: Request) -> Caller:
        caller = caller_of(request.scope)
        for scope in self.scopes:
            if not caller.has_scope(scope):
                raise Forbidden(f"This API key lacks the scope {scope}. Create a key that has it.")
        return caller


AnyCaller = Annotated[Caller, Depends(_any_caller)]
SessionCaller = Annotated[Caller, Depends(_session)]
