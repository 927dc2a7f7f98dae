"""The workflow of runs that earlier versions started. New ones are in workflow.py.

It keeps no state of its own, so it can be restarted from the database at any time. It imports no
database, settings or service code.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from rota.runs.backoff import failure_message
from rota.runs.contracts import (
    ADVANCE,
    BEGIN,
    CALL_FINISHED,
    CALL_MODEL,
    CALL_TOOL,
    FAIL,
    MODEL_UNAVAILABLE,
    TOOL_FAILED,
    TOOL_UNAVAILABLE,
    CallInput,
    FailInput,
    NextStep,
    RunInput,
)

# Without a limit on attempts: these activities need only the database, and wait until it is back.
_DATABASE_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5)
)
_MODEL_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=60),
    maximum_attempts=8,
)
_TOOL_RETRY = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=10,
)
_CALL_TIMEOUT = timedelta(minutes=15)
_DATABASE_TIMEOUT = timedelta(seconds=30)


@workflow.defn(name="run")
class Run:
    def __init__(self) -> None:
        self._wakes = 0

    @workflow.signal(name="nudge")
    def wake(self) -> None:
        """Something that this run waits for may have happened."""
        self._wakes += 1

    @workflow.run
    async def run(self, run_input: RunInput) -> None:
        seen = self._wakes
        next_step: NextStep = await self._update_database(BEGIN, run_input)
        while next_step.kind != "end":
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(run_input)
            if next_step.kind == "wait":
                await workflow.wait_condition(lambda at=seen: self._wakes != at)  # type: ignore[misc]
            seen = self._wakes
            try:
                next_step = await self._do(run_input, next_step)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    return  # Cancelling the task cancels its run; the task is already CANCELLED.
                next_step = await self._update_database(FAIL, _failure(run_input, error))

    async def _do(self, run_input: RunInput, next_step: NextStep) -> NextStep:
        outcome: NextStep
        if next_step.kind == "think":
            call_input = CallInput(run_input, next_step.step)
            outcome = await self._start_call(CALL_MODEL, call_input, _MODEL_RETRY)
        elif next_step.kind == "act":
            outcome = await self._call_tools(run_input, next_step)
        else:
            outcome = await self._update_database(ADVANCE, run_input)
        return outcome

    async def _call_tools(self, run_input: RunInput, next_step: NextStep) -> NextStep:
        calls = [
            self._start_call(CALL_TOOL, CallInput(run_input, next_step.step, call), _TOOL_RETRY)
            for call in next_step.calls
        ]
        # If one call fails, the others still finish: no call is left running unobserved.
        await asyncio.gather(*calls, return_exceptions=True)
        outcomes: list[NextStep] = [await call for call in calls]
        if all(outcome.kind == CALL_FINISHED.kind for outcome in outcomes):
            return NextStep("think", next_step.step + 1)
        advanced: NextStep = await self._update_database(ADVANCE, run_input)
        return advanced

    def _start_call(self, activity: str, call_input: CallInput, retry: RetryPolicy) -> Any:
        """Starts a model or tool call, which can take long and outlive its worker."""
        return workflow.start_activity(
            activity,
            call_input,
            result_type=NextStep,
            start_to_close_timeout=_CALL_TIMEOUT,
            heartbeat_timeout=timedelta(seconds=call_input.run.heartbeat_s),
            retry_policy=retry,
        )

    async def _update_database(self, activity: str, activity_input: RunInput | FailInput) -> Any:
        """Runs a short activity in this worker, without a round trip to Temporal."""
        return await workflow.execute_local_activity(
            activity,
            activity_input,
            result_type=NextStep,
            start_to_close_timeout=_DATABASE_TIMEOUT,
            retry_policy=_DATABASE_RETRY,
        )


def _failure(run_input: RunInput, error: ActivityError) -> FailInput:
    code = error.cause.type if isinstance(error.cause, ApplicationError) else None
    if code not in (MODEL_UNAVAILABLE, TOOL_UNAVAILABLE, TOOL_FAILED):
        code = "RUN_FAILED"
    return FailInput(run_input, code, failure_message(code), True)
