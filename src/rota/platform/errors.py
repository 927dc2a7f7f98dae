"""The errors that a client can see.

A subclass of ApiError sets the status and the code. Its message says what happened and what to do
next. ApiError derives from Starlette's HTTPException because FastAPI replaces every other exception
that is raised while a body is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.exceptions import HTTPException


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error in a request, and the field that it is in."""

    field: str
    message: str


class ApiError(HTTPException):
    status: ClassVar[int] = 500
    # None omits `code` from the envelope.
    code: ClassVar[str | None] = "INTERNAL_SERVER_ERROR"

    def __init__(
        self,
        message: str,
        *,
        details: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(self.status, detail=message, headers=dict(headers) if headers else None)
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return self.message

    @property
    def is_about_service(self) -> bool:
        """The service is busy or failing, which says nothing about the caller or the request."""
        return self.status >= 500 or isinstance(self, RateLimited)


class ValidationFailed(ApiError):
    status = 400
    code = "VALIDATION_ERROR"

    @classmethod
    def of(cls, *errors: FieldError) -> "ValidationFailed":
        text = "; ".join(f"{e.field}: {e.message}" if e.field else e.message for e in errors)
        details = [{"field": e.field, "message": e.message} for e in errors]
        return cls(f"The request is not valid. {text}", details=details)


class AuthenticationFailed(ApiError):
    status = 401
    code = "AUTHENTICATION_ERROR"

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"WWW-Authenticate": "Bearer"})

    @classmethod
    def missing(cls) -> "AuthenticationFailed":
        return cls(
            "Authentication required. Send the header Authorization: Bearer <API key or token>."
        )


class Forbidden(ApiError):
    status = 403
    code = "AUTHORIZATION_ERROR"


class NotFound(ApiError):
    status = 404
    code = "NOT_FOUND"


class Conflict(ApiError):
    status = 409
    code = "CONFLICT"


class RequestTimeout(ApiError):
    """The client sends its request too slowly."""

    status = 408
    code = "REQUEST_TIMEOUT"


class PayloadTooLarge(ApiError):
    status = 413
    code = "PAYLOAD_TOO_LARGE"

    def __init__(self, message: str) -> None:
        # The rest of the body is not read.
        super().__init__(message, headers={"Connection": "close"})


class HeadersTooLarge(ApiError):
    status = 431
    code = "HEADERS_TOO_LARGE"


class UnsupportedMediaType(ApiError):
    status = 415
    code = "UNSUPPORTED_MEDIA_TYPE"


class RateLimited(ApiError):
    """The account uses its whole share of this process. Others are not affected."""

    status = 429
    code = "RATE_LIMITED"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, headers={"Retry-After": str(retry_after_s)})


class Unavailable(ApiError):
    """A service that this request needs is down."""

    status = 503
    code = "SERVICE_UNAVAILABLE"


class DatabaseFailed(ApiError):
    status = 500
    code = "DATABASE_ERROR"


# The codes of statuses that the framework returns.
CODES: Mapping[int, str] = {
    kind.status: str(kind.code)
    for kind in (
        ValidationFailed,
        AuthenticationFailed,
        Forbidden,
        NotFound,
        Conflict,
        RequestTimeout,
        PayloadTooLarge,
        UnsupportedMediaType,
        Unavailable,
        ApiError,
    )
} | {405: "METHOD_NOT_ALLOWED"}


def envelope(
    message: str, code: str | None, details: object, *, timestamp: str, path: str
) -> dict[str, Any]:
    """The body of every error response."""
    error: dict[str, Any] = {"message": message}
    if code is not None:
        error["code"] = code
    if details is not None:
        error["details"] = details
    return {"error": error | {"timestamp": timestamp, "path": path}}
