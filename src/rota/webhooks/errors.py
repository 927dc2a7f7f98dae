"""Why a request about webhooks is refused."""

from rota.platform.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed


class WebhookNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("Webhook not found. GET /api/webhooks lists the webhooks.")


class TooManyWebhooks(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The account has {limit} webhooks, which is the limit. Delete one that is not needed."
        )


class TypesNotVisible(Forbidden):
    """An API key asks for events that it cannot read."""

    def __init__(self, types: list[str]) -> None:
        super().__init__(
            f"This credential cannot read events of the type {', '.join(types)[:200]}. Use a key "
            "that has their scopes, or a session."
        )


class SendsMore(Forbidden):
    """An API key changes a webhook that sends events that the key cannot read."""

    def __init__(self) -> None:
        super().__init__(
            "This webhook sends events that this credential cannot read. Use a key that has their "
            "scopes, or a session, or set `events` to types that the key can read."
        )


class InvalidUrl(ValidationFailed):
    def __init__(self, problem: str) -> None:
        invalid = ValidationFailed.of(FieldError("url", problem))
        super().__init__(invalid.message, details=invalid.details)


class BeyondLastEvent(ValidationFailed):
    def __init__(self, last: int) -> None:
        invalid = ValidationFailed.of(
            FieldError("fromSequence", f"must be at most {last + 1}, the number of the next event")
        )
        super().__init__(invalid.message, details=invalid.details)
