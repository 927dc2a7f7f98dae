"""Waits for the end of a task by asking for its state."""

import asyncio
import time

from rota_sdk import errors, models
from rota_sdk._async.transport import AsyncTransport
from rota_sdk._events import ENDED
from rota_sdk._generated import operations
from rota_sdk._requests import Request
from rota_sdk._retries import delay_s, max_failures

# It asks more and more rarely, so that a long task costs few requests.
FIRST_POLL_S, MOST_POLL_S = 0.25, 5.0
# The last question has this long at least, also if the time is nearly over.
LAST_POLL_S = 1.0


async def ended(
    transport: AsyncTransport,
    task_id: str,
    timeout: float | None,  # noqa: ASYNC109
    *,
    until_review: bool,
) -> models.Task:
    """The task when it has ended, or waits for a person. Raises WaitTimeoutError in time."""
    deadline = None if timeout is None else time.monotonic() + timeout
    limit = max_failures(transport.options.max_retries)
    request = Request.of(operations.get_task, {"id": task_id})
    status, failures, pause_s = "not known", 0, FIRST_POLL_S
    while True:
        left_s = None if deadline is None else deadline - time.monotonic()
        hasty = transport.within(left_s if left_s is None else max(left_s, LAST_POLL_S))
        failed: errors.RotaError | None = None
        try:
            found = (await hasty.call(operations.get_task, request, max_retries=0)).task
        except errors.RotaError as error:
            again_s = delay_s(error, failures, is_repeatable=True)
            is_late = deadline is not None and time.monotonic() >= deadline
            if again_s is None or (failures >= limit and not is_late):
                raise
            failures += 1
            failed, wait_s = error, again_s
        else:
            if found.status in ENDED or (until_review and found.status == "WAITING_APPROVAL"):
                return found
            status, failures, wait_s = found.status, 0, pause_s
            pause_s = min(pause_s * 1.5, MOST_POLL_S)
        if deadline is not None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise errors.WaitTimeoutError(
                    f"The task is {status} after {timeout} s. It continues."
                ) from failed
            wait_s = min(wait_s, left_s)
        await asyncio.sleep(wait_s)
