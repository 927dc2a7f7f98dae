"""The errors of the SDK: one class for each code of the API, and one for a lost connection."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from rota_sdk.models import FieldError, Review


class RotaError(Exception):
    """The base class of all errors of the SDK."""

    # The Idempotency-Key of the request, if it had one. To find out what a request did whose
    # response was lost, call the method again with it: the request takes effect once.
    idempotency_key: str | None = None
    # Whether this or an earlier attempt of the request may have taken effect.
    was_sent: bool = False


class APIConnectionError(RotaError):
    """No response arrived: the service is not reachable, or the connection was cut."""

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class APITimeoutError(APIConnectionError):
    """No response arrived within the timeout."""


class WaitTimeoutError(RotaError):
    """The task did not end in the time that `tasks.wait` was given. The task continues."""


class WebhookVerificationError(RotaError):
    """A webhook's signature, time or receiver is not right. Do not process it."""


class UnreadableResponseError(RotaError):
    """The response or event has an unexpected form: it is not from Rota, or this SDK is too old."""

    was_sent = True


class APIError(RotaError):
    """The service refused the request or failed."""

    # The code in a response, and the status that it comes with.
    code_name: ClassVar[str | None] = None
    usual_status: ClassVar[int] = 500

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        details: Any = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = self.usual_status if status is None else status
        self.code = code
        self.details = details
        # Quote it when you report a problem.
        self.request_id = request_id
        # How long the service asks to wait before the next request.
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        about = [str(self.status), *([self.code] if self.code else [])]
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{' '.join(about)}: {self.message}{request}"


class ValidationError(APIError):
    """A field or parameter is not valid."""

    code_name, usual_status = "VALIDATION_ERROR", 400

    @property
    def fields(self) -> "list[FieldError]":
        """Each problem with the field that it is in."""
        from rota_sdk.models import FieldError

        found = self.details if isinstance(self.details, list) else []
        return [FieldError.model_validate(each) for each in found]


class ToolsTooLargeError(ValidationError):
    """The account has no room for more tool definitions. Disconnect a server, or connect one with
    fewer tools."""

    code_name = "TOOLS_TOO_LARGE"


class AuthenticationError(APIError):
    """The API key or session token is missing, expired or not valid."""

    code_name, usual_status = "AUTHENTICATION_ERROR", 401


class PaymentRequiredError(APIError):
    """The balance is too low, or a payment failed."""

    usual_status = 402


class InsufficientCreditsError(PaymentRequiredError):
    """The balance does not cover the budget of the task."""

    code_name = "INSUFFICIENT_CREDITS"


class PaymentProcessorError(PaymentRequiredError):
    """The payment processor refused or did not respond."""

    code_name = "PAYMENT_PROCESSOR_ERROR"


class PermissionDeniedError(APIError):
    """The key's scopes, the account's tier or the role do not allow the request."""

    code_name, usual_status = "AUTHORIZATION_ERROR", 403


class SecondPersonRequiredError(PermissionDeniedError):
    """The caller shaped what is approved, so a second person has to approve it."""

    code_name = "SECOND_PERSON_REQUIRED"

    @property
    def because(self) -> list[str]:
        """How the caller shaped it: `created` or `edited`, for example."""
        because: list[str] = (self.details or {}).get("because", [])
        return because


class RecentSignInRequiredError(PermissionDeniedError):
    """The session is too old for this. Sign in again."""

    code_name = "RECENT_SIGN_IN_REQUIRED"


class NotFoundError(APIError):
    """The resource does not exist, or belongs to another account."""

    code_name, usual_status = "NOT_FOUND", 404


class MethodNotAllowedError(APIError):
    """The path does not support the method."""

    code_name, usual_status = "METHOD_NOT_ALLOWED", 405


class RequestTimeoutError(APIError):
    """The request arrived too slowly and was not handled."""

    code_name, usual_status = "REQUEST_TIMEOUT", 408


class ConflictError(APIError):
    """The resource is in a state that does not allow the request."""

    code_name, usual_status = "CONFLICT", 409

    @property
    def reason(self) -> str | None:
        """What is wrong with the Idempotency-Key: `in_progress` if the first request with it has
        not ended, `outcome_unknown` if that was interrupted and may have taken effect, and
        `key_reused` if it was another request. None if the conflict is not about the key."""
        found: str | None = self.details.get("reason") if isinstance(self.details, dict) else None
        return found

    @property
    def is_in_progress(self) -> bool:
        """Whether the first request with the same Idempotency-Key has not ended."""
        # The message is what an older service sends.
        start = "A request with this Idempotency-Key is in progress"
        return self.reason == "in_progress" or self.message.startswith(start)


class StaleReviewError(ConflictError):
    """The review has changed since it was shown. Nothing was decided."""

    @property
    def review(self) -> "Review":
        """The review that waits now."""
        from rota_sdk.models import Review

        return Review.model_validate(self.details["review"])


class ScheduleOwnerInvalidError(ConflictError):
    """The user or key that saved the schedule can no longer create its task."""

    code_name = "SCHEDULE_OWNER_INVALID"


class PayloadTooLargeError(APIError):
    """The body has more than 2 MiB."""

    code_name, usual_status = "PAYLOAD_TOO_LARGE", 413


class UnsupportedMediaTypeError(APIError):
    """The body is not JSON."""

    code_name, usual_status = "UNSUPPORTED_MEDIA_TYPE", 415


class MisdirectedRequestError(APIError):
    """The service does not serve the host name of the request."""

    code_name, usual_status = "MISDIRECTED_REQUEST", 421


class HeadersTooLargeError(APIError):
    """The headers have more than 64 KiB."""

    code_name, usual_status = "HEADERS_TOO_LARGE", 431


class RateLimitError(APIError):
    """The account sent too many requests (`RATE_LIMIT_EXCEEDED`), or too many at once
    (`RATE_LIMITED`)."""

    code_name, usual_status = "RATE_LIMIT_EXCEEDED", 429


class TooManyAtOnceError(RateLimitError):
    """The account has too much in progress at once."""

    code_name = "RATE_LIMITED"


class InternalServerError(APIError):
    """The service failed."""

    code_name, usual_status = "INTERNAL_SERVER_ERROR", 500


class DatabaseError(InternalServerError):
    """The service's database failed."""

    code_name = "DATABASE_ERROR"


class ToolServerError(APIError):
    """A tool server failed or refused a call."""

    code_name, usual_status = "TOOL_SERVER_ERROR", 502


class ToolServerTimeoutError(ToolServerError):
    """A tool server did not answer in time."""

    code_name, usual_status = "TOOL_SERVER_TIMEOUT", 504


class ServiceUnavailableError(InternalServerError):
    """Something that the service needs is down."""

    code_name, usual_status = "SERVICE_UNAVAILABLE", 503


def _with_subclasses(kind: type[APIError]) -> list[type[APIError]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in _with_subclasses(sub))]


BY_CODE: Mapping[str, type[APIError]] = {
    kind.code_name: kind
    for kind in _with_subclasses(APIError)
    if kind.code_name is not None and "code_name" in vars(kind)
}
_BY_STATUS: Mapping[int, type[APIError]] = {
    402: PaymentRequiredError,
    **{
        BY_CODE[code].usual_status: BY_CODE[code]
        for code in ("VALIDATION_ERROR", "AUTHENTICATION_ERROR", "AUTHORIZATION_ERROR", "NOT_FOUND")
    },
    408: RequestTimeoutError,
    409: ConflictError,
    429: RateLimitError,
}


def api_error(
    error: Mapping[str, Any],
    *,
    status: int | None = None,
    request_id: str | None = None,
    retry_after_s: float | None = None,
) -> APIError:
    """The error with the class of its code, or of its status if the code is not known."""
    code, details = error.get("code"), error.get("details")
    kind = BY_CODE.get(str(code))
    if kind is None:
        fallback = InternalServerError if (status or 500) >= 500 else APIError
        kind = _BY_STATUS.get(status or 500, fallback)
    if kind is ConflictError and isinstance(details, dict) and details.get("review"):
        kind = StaleReviewError
    return kind(
        str(error.get("message", "The service gave no reason.")),
        status=status,
        code=code,
        details=details,
        request_id=request_id,
        retry_after_s=retry_after_s,
    )
