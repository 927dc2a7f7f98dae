"""What can become of a message that is sent."""

from rota.platform.telemetry import without_secrets

UNUSUAL_ADDRESS = "Emails cannot be sent to this address."


def shown(error: object) -> str:
    """The text of an error, for users and logs, without what PostgreSQL cannot store: NUL and
    unpaired surrogates, which stand for bytes of a mail server that are not UTF-8."""
    text = str(error).replace("\0", "\ufffd").encode(errors="replace").decode()
    return without_secrets(text)[:300]


class NotDelivered(Exception):
    """The receiver cannot be reached, or asks to try later. The message is tried again.

    Users read the reason. `detail` is for the operator: it can name hosts and logins.
    """

    def __init__(
        self, reason: str, *, detail: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(reason)
        self.detail = detail
        self.retry_after_s = retry_after_s


class Refused(Exception):
    """The receiver refuses the message. It would refuse it again."""
