"""How often a call is attempted, and how long a run pauses between two attempts."""

from dataclasses import dataclass

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

    def pause_s(self, code: str, failed: int, models: int = 1) -> float:
        """The pause after this many failed attempts. Raises after the last one.

        It doubles each time, or each time that a call has failed once for each of its models.
        """
        if failed >= self.maximum * models:
            raise Exhausted(code)
        return self.backoff_s(failed, models)

    def backoff_s(self, failed: int, models: int = 1) -> float:
        rounds = -(-failed // models)
        return float(min(self.longest_s, 2 ** (rounds - 1)))


MODEL_ATTEMPTS = Attempts(maximum=8, longest_s=60)
TOOL_ATTEMPTS = Attempts(maximum=10, longest_s=30)
