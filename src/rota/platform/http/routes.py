"""Routes that accept only JSON bodies, and only unambiguous JSON."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from rota.platform import json
from rota.platform.errors import FieldError, UnsupportedMediaType, ValidationFailed

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def by_name(route: APIRoute) -> str:
    """The operation ID of a route in the OpenAPI description."""
    return route.name


class StrictRequest(Request):
    async def body(self) -> bytes:
        body = await super().body()
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise UnsupportedMediaType(
                "The request body must be JSON. Send the header Content-Type: application/json."
            )
        return body

    async def json(self) -> Any:
        try:
            return json.loads(await self.body())
        except json.InvalidJson as error:
            raise ValidationFailed.of(
                FieldError("", f"The request body is not valid JSON: {error}.")
            ) from None


class Route(APIRoute):
    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
