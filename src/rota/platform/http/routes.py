"""Routes that accept only JSON bodies, only unambiguous JSON, and only parameters they know."""

from typing import Any, final

from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from rota.platform import json
from rota.platform.errors import FieldError, UnsupportedMediaType, ValidationFailed
from rota.platform.http.plain import Handler, plain_handler
from rota.platform.strict import MAX_ERRORS, unknown

# The client can choose the name of a field, and it can be as long as the body.
MAX_FIELD_CHARACTERS = 200


def by_name(route: APIRoute) -> str:
    """The operation ID of a route in the OpenAPI description."""
    return route.name


class StrictRequest(Request):
    max_values = json.MAX_VALUES

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
            return json.loads(await self.body(), self.max_values)
        except json.InvalidJson as error:
            raise ValidationFailed.of(
                FieldError("", f"The request body is not valid JSON: {error}.")
            ) from None


class Route(APIRoute):
    # How many values the JSON of a body can have.
    max_values = json.MAX_VALUES

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        handle = plain_handler(self)
        if handle is not None:
            self.app = _responding(self._strict(handle))

    @final  # A plain route does not use it. A subclass can change `admit`.
    def get_route_handler(self) -> Handler:
        return self._strict(super().get_route_handler())

    def admit(self, scope: Scope) -> None:
        """Raises if the client cannot use the route. Called before the body is read."""

    def _strict(self, handle: Handler) -> Handler:
        # Pages are not part of the API. Other sites link to them with parameters of their own.
        checked = self.include_in_schema
        params = get_flat_params(self.dependant)
        known = {param.alias for param in params if isinstance(param.field_info, Query)}

        async def strict(request: Request) -> Response:
            self.admit(request.scope)
            if checked and request.scope["query_string"]:
                _check_parameters(request, known)
            if not isinstance(request, StrictRequest):
                request = StrictRequest(request.scope, request.receive)
            request.max_values = self.max_values
            return await handle(request)

        return strict


def _responding(handle: Handler) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await handle(StrictRequest(scope, receive, send))
        await response(scope, receive, send)

    return app


def _check_parameters(request: Request, known: set[str]) -> None:
    found = [name for name in request.query_params if name not in known][:MAX_ERRORS]
    if found:
        errors = [
            FieldError(name[:MAX_FIELD_CHARACTERS], unknown("parameter", name, known))
            for name in found
        ]
        raise ValidationFailed.of(*errors)
