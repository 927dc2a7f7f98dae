"""When a request is sent again, and after how long."""

import random

from rota_sdk import errors

FIRST_S = 0.5
MOST_S = 8.0
# A client that is told to wait longer than this fails instead. A window of the rate limit has 60 s.
LONGEST_WAIT_S = 60.0
# How often the pause grows while another request with the same key is in progress: up to 4 s, so
# that its end is noticed soon.
MOST_GROWTH = 3
# How often in a row a stream or a wait fails to reach the service before it gives up. Together with
# the time between the attempts, this is more than a minute.
RECONNECTS = 20


def max_failures(max_retries: int) -> int:
    """How often something that takes long is tried again. A client can have no retries at all."""
    return max(RECONNECTS, max_retries) if max_retries else 0


def backoff_s(attempt: int, first_s: float = FIRST_S) -> float:
    """Grows with each attempt. It is random, so that clients do not come back together."""
    # A stream can be cut any number of times. 2.0**1024 is an error.
    return random.uniform(0.5, 1.0) * min(MOST_S, first_s * 2.0 ** min(attempt, 16))  # noqa: S311


def delay_s(error: errors.RotaError, attempt: int, *, is_repeatable: bool) -> float | None:
    """How long to wait before the next attempt. None if there should be none."""
    if isinstance(error, errors.APIConnectionError):
        return backoff_s(attempt) if is_repeatable or not error.was_sent else None
    if not isinstance(error, errors.APIError) or not _can_pass_later(error, is_repeatable):
        return None
    if error.retry_after_s is None:
        return backoff_s(attempt)
    if error.retry_after_s > LONGEST_WAIT_S:
        return None
    return error.retry_after_s + backoff_s(0) * random.random()  # noqa: S311


def _can_pass_later(error: errors.APIError, is_repeatable: bool) -> bool:
    # The service did not handle these requests. A proxy may have sent a timeout without a code.
    if isinstance(error, errors.RateLimitError):
        return True
    if isinstance(error, errors.RequestTimeoutError):
        return is_repeatable or error.code is not None
    # The tool server may have done the work, and would do it again.
    if isinstance(error, errors.ToolServerError):
        return False
    return error.status >= 500 and is_repeatable


def may_have_worked(error: errors.RotaError) -> bool:
    """Whether the request may have had its effect although it failed."""
    if isinstance(error, errors.ConflictError) and error.is_in_progress:
        return True
    if isinstance(error, errors.APIError):
        return error.status >= 500
    return error.was_sent
