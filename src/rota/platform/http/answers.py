"""Turns every failure into the error envelope: ours, the framework's, and crashes."""

from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from rota.platform import clock
from rota.platform.errors import CODES, ApiError, FieldError, ValidationFailed, envelope
from rota.platform.idempotency import Outcome

_MESSAGES = {
    404: "There is nothing at this path. GET /openapi.json lists what there is.",
    405: "This path does not answer to that method. The Allow header lists the ones it does.",
}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MAX_FIELD_CHARACTERS = 200


def json_response(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(
        orjson.dumps(body), status_code=status, headers=headers, media_type="application/json"
    )


def error_response(path: str, error: HTTPException) -> Response:
    if isinstance(error, ApiError):
        message, code, details = error.message, error.code, error.details
    else:
        message = _MESSAGES.get(error.status_code, str(error.detail))
        code, details = CODES.get(error.status_code), None
    body = envelope(message, code, details, timestamp=clock.to_wire(clock.now()), path=path)
    return json_response(error.status_code, body, dict(error.headers or {}))


def _field(location: tuple[Any, ...]) -> str:
    # The first part says body, query or path; a client knows that by the name.
    # The name may be the client's own, and as long as the body.
    return ".".join(str(part) for part in location[1:])[:MAX_FIELD_CHARACTERS]


def validation_failed(error: RequestValidationError) -> ValidationFailed:
    # A body can be wrong in a thousand places; the first twenty are enough to go on.
    found = [FieldError(_field(item["loc"]), item["msg"]) for item in error.errors()[:20]]
    return ValidationFailed.of(*found)


def _methods_at(app: FastAPI, scope: Scope) -> str:
    """All methods of a path. The router tells only those of the first route that it finds."""
    return ", ".join(
        method
        for method in _METHODS
        if any(
            route.matches({**scope, "method": method})[0] is Match.FULL
            for route in app.router.routes
        )
    )


def add_handlers(app: FastAPI) -> None:
    # The path is read from the scope: `request.url` would read the Host header too, which
    # the caller writes as it likes.
    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = error_response(request.scope["path"], error)
        if error.status_code == 405:
            response.headers["Allow"] = _methods_at(app, request.scope)
        return response

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(request.scope["path"], validation_failed(error))

    # A path has one spelling; a redirect would be an answer without a body.
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)


def respond(outcome: Outcome) -> Response:
    """The HTTP response for work that an idempotency key may have replayed."""
    headers = {"Idempotent-Replayed": "true"} if outcome.replayed else None
    return Response(
        outcome.body, status_code=outcome.status, headers=headers, media_type="application/json"
    )
