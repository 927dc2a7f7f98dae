"""How often a call is attempted, and how long a run pauses between two attempts."""

from dataclasses import dataclass
from datetime import timedelta

_CAUSES = {
    "MODEL_UNAVAILABLE": "The model provider failed too often.",
    "TOOL_UNAVAILABLE": "A tool server was not available for too long.",
    "TOOL_FAILED": "A tool call failed too often.",
}


class Stop(Exception):
    """The call is not attempted again, or not now."""


class BackOff(Stop):
    """The next attempt is due only after this many seconds, so the slice ends."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the next attempt is due in {seconds} s")
        self.seconds = seconds


class Exhausted(Stop):
    """A call has failed on its last attempt."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
        self.message = failure_message(code)


def failure_message(code: str) -> str:
    what = _CAUSES.get(code, "A step of the run failed too often.")
    return f"{what} Fix the cause, then retry the task from the failed step."


@dataclass(frozen=True, slots=True)
class Attempts:
    maximum: int
    longest_s: float
    # A pause up to this long is waited inside the slice.
    inside_s: float = 1

    def pause_s(self, code: str, failed: int, after: timedelta | None) -> float:
        """The pause after this many failed attempts: `after`, or twice as long each time."""
        if failed >= self.maximum:
            raise Exhausted(code)
        if after is not None:
            return after.total_seconds()
        return float(min(self.longest_s, 2 ** (failed - 1)))
