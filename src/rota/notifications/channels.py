"""What can become of a message that is sent."""


class NotDelivered(Exception):
    """The receiver cannot be reached, or asks to try later. The message is tried again."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class Refused(Exception):
    """The receiver refuses the message. It would refuse it again."""
