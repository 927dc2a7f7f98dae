"""JSON responses, and the error envelope for the errors of the service and the framework."""

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from rota.platform import clock, json
from rota.platform.errors import CODES, ApiError, FieldError, ValidationFailed, envelope
from rota.platform.http.routes import MAX_FIELD_CHARACTERS
from rota.platform.idempotency import Outcome
from rota.platform.strict import MAX_ERRORS
from rota.platform.validation_words import problem

_MESSAGES = {
    404: "Path not found. GET /openapi.json lists all paths.",
    405: "Method not allowed for this path. The Allow header lists the allowed methods.",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def json_response(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(
        json.dumps(body), status_code=status, headers=headers, media_type="application/json"
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
    # The first part is body, query or path, which the name makes clear.
    return ".".join(str(part) for part in location[1:])[:MAX_FIELD_CHARACTERS]


def validation_failed(error: RequestValidationError) -> ValidationFailed:
    # A body can have thousands of errors. The first twenty are enough.
    found = [FieldError(_field(item["loc"]), problem(item)) for item in error.errors()[:MAX_ERRORS]]
    return ValidationFailed.of(*found)


def _methods_at(app: FastAPI, scope: Scope) -> str:
    """All methods of a path. The router knows only those of the first matching route."""
    routes = app.router.routes
    # A path of its own is not one of the IDs that another route takes.
    if own := [route for route in routes if getattr(route, "path", None) == scope["path"]]:
        routes = own
    found = {
        method
        for method in METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    }
    if "GET" in found:
        # The outermost layer responds to it wherever GET does.
        found.add("HEAD")
    return ", ".join(method for method in METHODS if method in found)


def add_handlers(app: FastAPI) -> None:
    # The path comes from the scope. `request.url` also uses the Host header, which the client
    # controls.
    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = error_response(request.scope["path"], error)
        if error.status_code == 405:
            response.headers["Allow"] = _methods_at(app, request.scope)
        return response

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(request.scope["path"], validation_failed(error))

    # Each path has one spelling. A redirect would be a response without a body.
    app.router.redirect_slashes = False
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)


def respond(outcome: Outcome) -> Response:
    """The HTTP response for an outcome, which may be a replayed one."""
    headers = {"Idempotent-Replayed": "true"} if outcome.replayed else None
    return Response(
        outcome.body, status_code=outcome.status, headers=headers, media_type="application/json"
    )
