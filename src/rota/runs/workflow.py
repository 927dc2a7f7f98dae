"""The workflow of a run: slice after slice, until the run ends.

A slice is one activity that carries the run forward, call by call. The workflow only waits between
slices: for a person or a subtask, for a timer, or for another account's turn. What the run does
next is in the database, so the workflow can be restarted from there at any time.
"""

from dataclasses import replace
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from rota.runs.backoff import failure_message
from rota.runs.contracts import FAIL, SLICE, FailInput, NextStep, RunInput, SliceEnd

# The run fails after this many slices in a row without a finished call. Back-offs do not count:
# the attempts of a call are counted with the call. Neither do slices that never began, which
# Temporal gave to a worker that is frozen or cut off, unless there are many.
MAX_IDLE_SLICES = 5
MAX_LOST_SLICES = 25
# Longer than the longest call, with minutes for the database to come back.
_SLICE_TIMEOUT = timedelta(hours=1)
# This workflow counts the slices itself.
_ONCE = RetryPolicy(maximum_attempts=1)
# Without a limit on attempts: failing a run needs only the database, and waits until it is back.
_DATABASE_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5)
)


@workflow.defn(name="task-run")
class TaskRun:
    def __init__(self) -> None:
        self._wakes = 0

    @workflow.signal(name="nudge")
    def wake(self) -> None:
        """Something that this run waits for may have happened."""
        self._wakes += 1

    @workflow.run
    async def run(self, run_input: RunInput) -> None:
        # The finished calls, and the slices since the last progress.
        finished = idle = 0
        # The fence at the last progress. Each slice that begins raises it.
        fence = run_input.start_fence
        while True:
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(replace(run_input, start_fence=fence))
            seen = self._wakes
            try:
                end = await self._slice(run_input)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    return  # Cancelling the task cancels its run; the task is already CANCELLED.
                # The worker died, or something unexpected failed. The next slice finds out what was
                # done.
                end = SliceEnd("again", finished, after_s=2 ** (idle % MAX_IDLE_SLICES) - 1)
                idle += 1
            else:
                moved = end.finished > finished or end.stopped or end.after_s > 0
                idle = 0 if moved or end.kind != "again" else idle + 1
                finished = max(finished, end.finished)
                if idle == 0 and end.fence is not None:
                    fence = end.fence
            if end.kind == "end":
                return
            if idle and idle % MAX_IDLE_SLICES == 0:
                # An earlier version gave no fence. A task begins with 0.
                at_fence = (fence or 0) + MAX_IDLE_SLICES if idle < MAX_LOST_SLICES else None
                found = await self._fail(run_input, finished, at_fence)
                if found.kind == "end":
                    return
                if found.step > finished:
                    finished, fence, idle = found.step, found.fence, 0
            elif end.kind == "wait":
                await workflow.wait_condition(lambda at=seen: self._wakes != at)  # type: ignore[misc]
            elif end.after_s:
                await workflow.sleep(end.after_s)

    async def _slice(self, run_input: RunInput) -> SliceEnd:
        end: SliceEnd = await workflow.execute_activity(
            SLICE,
            run_input,
            result_type=SliceEnd,
            start_to_close_timeout=_SLICE_TIMEOUT,
            heartbeat_timeout=timedelta(seconds=run_input.heartbeat_s),
            retry_policy=_ONCE,
        )
        return end

    async def _fail(self, run_input: RunInput, finished: int, at_fence: int | None) -> NextStep:
        """Fails the run, unless slices have finished a call or have not begun.

        If the run goes on, the step is the number of its finished calls.
        """
        code = "RUN_FAILED"
        fail_input = FailInput(run_input, code, failure_message(code), True, finished, at_fence)
        next_step: NextStep = await workflow.execute_local_activity(
            FAIL,
            fail_input,
            result_type=NextStep,
            start_to_close_timeout=timedelta(seconds=30),
            retry_policy=_DATABASE_RETRY,
        )
        return next_step
