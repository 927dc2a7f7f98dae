"""Why a request about notifications is refused."""

from rota.platform.errors import Conflict, FieldError, NotFound, RateLimited, ValidationFailed


class NoVerifiedAddress(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Your identity provider has not verified an email address of yours, so no email can be "
            "sent. Verify it there and sign in again, or use chat."
        )


class NoChat(Conflict):
    def __init__(self) -> None:
        super().__init__("No webhook of a chat service is saved. Save its URL first.")


class InvalidChat(ValidationFailed):
    """The URL or the service of the chat is missing or wrong."""

    def __init__(self, field: str, problem: str) -> None:
        invalid = ValidationFailed.of(FieldError(f"chat.{field}", problem))
        super().__init__(invalid.message, details=invalid.details)


class TestedTooSoon(RateLimited):
    def __init__(self, wait_s: int) -> None:
        super().__init__(
            f"A test message was sent a moment ago. Try again in {wait_s} seconds.",
            retry_after_s=wait_s,
        )


class LinkNotValid(NotFound):
    def __init__(self) -> None:
        super().__init__(
            "This link is not valid. Open the link in the email again, or change what you are "
            "notified about in the settings of the dashboard."
        )
