"""FastAPI with a shorter way to the route of a request.

Its outermost layers turn errors into responses and collect telemetry, as `Edge` does, so they are
left out. Its router compares a path with one route after the other; there are more than a hundred.
"""

from fastapi import APIRouter, FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send


class Application(FastAPI):
    def build_middleware_stack(self) -> ASGIApp:
        app: ASGIApp = AsyncExitStackMiddleware(Dispatch(self.router))
        app = ExceptionMiddleware(app, handlers=self.exception_handlers)
        for layer, arguments, options in reversed(self.user_middleware):
            app = layer(app, *arguments, **options)
        return app


class Dispatch:
    """Compares a path only with the routes that begin with the same two parts, as in `/api/tasks`,
    in the order of the router. Where none matches, the router responds."""

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        heads = {head for route in router.routes if (head := _head_of(route)) is not None}
        self._routes = {
            head: [route for route in router.routes if _head_of(route) in (head, None)]
            for head in heads
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["router"] = self._router
            for route in self._routes.get(_head(scope["path"]), ()):
                match, matched = route.matches(scope)
                if match is Match.FULL:
                    scope.update(matched)
                    await route.handle(scope, receive, send)
                    return
        await self._router(scope, receive, send)


def _head(path: str) -> str:
    """`/api/tasks` of `/api/tasks/task_1/run`."""
    return "/".join(path.split("/", 3)[:3])


def _head_of(route: BaseRoute) -> str | None:
    """None for a route whose first parts depend on the request."""
    if not isinstance(route, Route):
        return None
    head = _head(route.path)
    return head if "{" not in head else None
