"""The workflow of a run: a durable pump that does what the database says is next.

It holds no state of its own beyond where it is in this loop, so it can be
started again from nothing at any time. It imports no database, no settings and
no service.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from rota.runs.contracts import (
    MODEL_UNAVAILABLE,
    TOOL_FAILED,
    TOOL_UNAVAILABLE,
    CallInput,
    FailInput,
    NextStep,
    RunInput,
)

# The database comes back; until then these wait.
_PATIENT = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5)
)
# A provider that fails this often, over some minutes, fails the run.
_MODEL = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2,
    maximum_interval=timedelta(seconds=60),
    maximum_attempts=8,
)
_TOOL = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=10,
)
_CALL_TIMEOUT = timedelta(minutes=15)
_SHORT = timedelta(seconds=30)


@workflow.defn(name="run")
class Run:
    def __init__(self) -> None:
        self._nudges = 0

    @workflow.signal
    def nudge(self) -> None:
        """Something that this run waits for may have happened."""
        self._nudges += 1

    @workflow.run
    async def run(self, order: RunInput) -> None:
        seen = self._nudges
        now: NextStep = await self._short("begin", order)
        while now.kind != "end":
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(order)
            if now.kind == "wait":
                await workflow.wait_condition(lambda at=seen: self._nudges != at)  # type: ignore[misc]
            seen = self._nudges
            try:
                now = await self._next(order, now)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    return  # The task is CANCELLED already; that is why the run was stopped.
                now = await self._short("fail", FailInput(order, *_cause(error)))

    async def _next(self, order: RunInput, now: NextStep) -> NextStep:
        outcome: NextStep
        if now.kind == "think":
            outcome = await self._call("think", CallInput(order, now.step), _MODEL)
        elif now.kind == "act":
            outcome = await self._act(order, now)
        else:
            outcome = await self._short("look", order)
        return outcome

    async def _act(self, order: RunInput, now: NextStep) -> NextStep:
        calls = [self._call("act", CallInput(order, now.step, call), _TOOL) for call in now.calls]
        # All of them come to an end, also where one fails: a call is never left alone.
        await asyncio.gather(*calls, return_exceptions=True)
        outcomes: list[NextStep] = [await call for call in calls]
        if all(outcome.kind == "think" for outcome in outcomes):
            return NextStep("think", now.step + 1)
        looked: NextStep = await self._short("look", order)
        return looked

    def _call(self, activity: str, order: CallInput, retry: RetryPolicy) -> Any:
        """A model or tool call: it can take long, and its worker can die in it."""
        return workflow.start_activity(
            activity,
            order,
            result_type=NextStep,
            start_to_close_timeout=_CALL_TIMEOUT,
            heartbeat_timeout=timedelta(seconds=order.run.heartbeat_s),
            retry_policy=retry,
        )

    async def _short(self, activity: str, order: RunInput | FailInput) -> Any:
        """A step in the database, done in place."""
        return await workflow.execute_local_activity(
            activity,
            order,
            result_type=NextStep,
            start_to_close_timeout=_SHORT,
            retry_policy=_PATIENT,
        )


_CAUSES = {
    MODEL_UNAVAILABLE: "The model provider failed too often.",
    TOOL_UNAVAILABLE: "A tool server was away for too long.",
    TOOL_FAILED: "A tool call failed too often.",
}


def _cause(error: ActivityError) -> tuple[str, str, bool]:
    code = error.cause.type if isinstance(error.cause, ApplicationError) else None
    if code not in _CAUSES:
        code = "RUN_FAILED"
    what = _CAUSES.get(code, "A step of the run failed too often.")
    return code, f"{what} Retry the task from failure once that is mended.", True
