"""How often a call is attempted, and how long a run pauses between two attempts."""

import heapq
import time
from dataclasses import dataclass
from uuid import UUID

from rota.platform import clock
from rota.platform.cache import ExpiringCache
from rota.runs.contracts import MODEL_UNAVAILABLE, TOOL_FAILED, TOOL_UNAVAILABLE

_CAUSES = {
    MODEL_UNAVAILABLE: "The model provider failed too often.",
    TOOL_UNAVAILABLE: "A tool server was not available for too long.",
    TOOL_FAILED: "A tool call failed too often.",
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


# How long a run waits for its account's turn before it asks again.
MIN_TURN_S, MAX_TURN_S = 3.0, 60.0
# How many waiting runs of an account ask a worker again each second, if so many wait that their
# pauses would be shorter otherwise, and the longest pause then.
TURNS_PER_S = 2
MAX_QUEUE_S = 600.0
MAX_ACCOUNTS = 10_000


class Turns:
    """When the runs whose accounts have used their shares ask again.

    Each time costs a slice, so the pauses double, and are longer if many runs of the account wait.
    """

    def __init__(self) -> None:
        # When the waiting runs of an account ask again, as a heap.
        self._due: ExpiringCache[UUID, list[float]] = ExpiringCache(
            max_items=MAX_ACCOUNTS, max_age_s=2 * MAX_QUEUE_S
        )

    def pause_s(self, account_id: UUID, waited_s: float, retry_after_s: float) -> float:
        """The next pause of a run that has waited this long."""
        now = time.monotonic()
        due = self._due.get(account_id) or []
        while due and due[0] <= now:
            heapq.heappop(due)
        alone_s = min(MAX_TURN_S, max(MIN_TURN_S, waited_s))
        queue_s = min(MAX_QUEUE_S, len(due) / TURNS_PER_S)
        pause_s = max(retry_after_s, clock.about(max(alone_s, queue_s)))
        heapq.heappush(due, now + pause_s)
        self._due.put(account_id, due)
        return pause_s
