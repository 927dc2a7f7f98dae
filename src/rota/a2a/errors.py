"""Errors of this service in the form of the protocol, and the count of calls.

The protocol has few errors of its own. Where one fits, it is used. All others are an invalid
request or an internal error. The metadata of each has the code of the REST API, its HTTP status and
the ID of the request. The HTTP+JSON binding also has the status and headers of the REST API.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from a2a.server.context import ServerCallContext
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2A_ERROR_REASONS,
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    MethodNotFoundError,
    TaskNotCancelableError,
    TaskNotFoundError,
    VersionNotSupportedError,
)
from google.protobuf.message import Message
from prometheus_client import Counter

from rota.a2a.envelope import NotACall, UnknownMethod, VersionRefused, check_required
from rota.platform.errors import (
    ApiError,
    Conflict,
    UnsupportedMediaType,
    ValidationFailed,
)
from rota.platform.http.edge import as_api_error
from rota.tasks.errors import TaskNotFound
from rota.tasks.states import TransitionRefused

CALLS = Counter(
    "rota_a2a_calls_total",
    "Calls of the operations that this service offers as an A2A agent.",
    ["operation", "outcome"],
)

# Where a context stores the error of the service.
REFUSAL = "refusal"
# What gRPC calls the statuses. The protocol uses its names.
_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    415: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class MessageIdReused(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "This messageId was used for a different message in the last 24 hours. Use a new one.",
            details={"reason": "key_reused"},
        )


# The errors of the protocol, by those of this service. The first that fits is used.
_KINDS: tuple[tuple[type[ApiError], type[A2AError]], ...] = (
    (TaskNotFound, TaskNotFoundError),
    (TransitionRefused, TaskNotCancelableError),
    (VersionRefused, VersionNotSupportedError),
    (UnknownMethod, MethodNotFoundError),
    (UnsupportedMediaType, ContentTypeNotSupportedError),
    (NotACall, InvalidRequestError),
    (ValidationFailed, InvalidParamsError),
)


def protocol_error(error: ApiError) -> A2AError:
    other = InternalError if error.status >= 500 else InvalidRequestError
    kind = next((kind for own, kind in _KINDS if isinstance(error, own)), other)
    return kind(error.message, data=_metadata(error))


def _metadata(error: ApiError) -> dict[str, Any]:
    shown: dict[str, Any] = {"code": error.code or "", "status": str(error.status), **_request()}
    if (wait := (error.headers or {}).get("Retry-After")) is not None:
        shown["retryAfterSeconds"] = wait
    if isinstance(error, ValidationFailed) and error.details:
        # The SDK makes field violations of them.
        shown["errors"] = error.details
    if isinstance(error.details, dict) and "reason" in error.details:
        shown["reason"] = error.details["reason"]
    return shown


def _request() -> dict[str, str]:
    found = structlog.contextvars.get_contextvars().get("request_id")
    return {"requestId": found} if found else {}


def refused(kind: type[A2AError], message: str, **metadata: str) -> A2AError:
    """An error of the protocol that no error of the REST API stands for."""
    return kind(message, data=_request() | metadata)


def rest_payload(error: ApiError) -> dict[str, Any]:
    """The body of the HTTP+JSON binding, with the status of the REST API."""
    payload: dict[str, Any] = build_rest_error_payload(protocol_error(error))
    if payload["error"]["code"] != error.status:
        payload["error"]["code"] = error.status
        payload["error"]["status"] = _STATUS_NAMES.get(error.status, "INTERNAL")
    return payload


@contextmanager
def reported(
    operation: str, context: ServerCallContext, params: Message | None = None
) -> Iterator[None]:
    """Counts a call, checks that its parameters are complete, and turns its error into one of the
    protocol."""
    outcome = "ok"
    try:
        if params is not None:
            check_required(params)
        yield
    except (GeneratorExit, asyncio.CancelledError):
        outcome = "closed"
        raise
    except A2AError as raised:
        outcome = A2A_ERROR_REASONS.get(type(raised), "error")
        raise
    except Exception as raised:
        error = as_api_error(raised)
        outcome = error.code or "error"
        context.state[REFUSAL].append(error)
        raise protocol_error(error) from None
    finally:
        CALLS.labels(operation, outcome).inc()
