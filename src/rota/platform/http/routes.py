"""Routes that read bodies strictly: JSON only, and only JSON that is beyond doubt."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from rota.platform import json
from rota.platform.errors import FieldError, UnsupportedMediaType, ValidationFailed

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def by_name(route: APIRoute) -> str:
    """What the description calls an operation."""
    return route.name


class StrictRequest(Request):
    async def body(self) -> bytes:
        body = await super().body()
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            raise UnsupportedMediaType("Send JSON, with the header Content-Type: application/json.")
        return body

    async def json(self) -> Any:
        try:
            return json.loads(await self.body())
        except json.InvalidJson as error:
            raise ValidationFailed.of(
                FieldError("", f"The body is no valid JSON: {error}.")
            ) from None


class Route(APIRoute):
    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict
