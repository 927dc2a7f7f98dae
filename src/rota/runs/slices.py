"""The activity of a run: a slice carries it forward, call by call.

A slice ends when the run ends or waits, after a number of seconds or steps, so that accounts take
turns, and when its worker stops. Every call is in the database before the next one begins, so the
next slice continues from there, on any worker.
"""

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter, Histogram
from temporalio import activity
from temporalio.exceptions import ApplicationError

from rota.agents.model import AgentVersion
from rota.events.fanout import Fanout
from rota.platform import clock
from rota.platform.db import AccountTransaction
from rota.runs import forked_steps, step_events, steps
from rota.runs.backoff import MODEL_ATTEMPTS, TOOL_ATTEMPTS, BackOff, Exhausted, Stop
from rota.runs.call_budget import ModelCallInput
from rota.runs.call_protection import Pulse, heartbeats, retry_database
from rota.runs.contracts import (
    CALL_FINISHED,
    CALL_MODEL,
    CALL_TOOL,
    MODEL_UNAVAILABLE,
    SLICE,
    TOOL_FAILED,
    TOOL_UNAVAILABLE,
    CallInput,
    NextStep,
    RunInput,
    SliceEnd,
    SliceKind,
)
from rota.runs.lost_calls import AbandonedCalls, Watching, abort
from rota.runs.model_errors import GiveUp, TryAgain
from rota.runs.parts import RunParts
from rota.runs.run_context import FencedOut, History, act_as_agent, span_of
from rota.runs.slots import Slots
from rota.runs.steps import Step
from rota.runs.tool_call import WAITS_FOR_PERSON, Started
from rota.runs.tools import AccountBusy, ToolUnavailable
from rota.tasks import places, queries, transitions
from rota.tasks.model import Task
from rota.tasks.states import TERMINAL, Trigger

log = structlog.get_logger()

QUEUE_SECONDS = Histogram(
    "rota_run_queue_seconds",
    "Time from the creation of a task to the start of its run.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 1800),
)
SLICES = Counter("rota_slices_total", "Slices of runs, by how they ended.", ["end"])

# Tool calls of one step that a slice makes at the same time.
CALLS_AT_ONCE = 8
# A pause up to this long is waited inside the slice.
PAUSE_INSIDE_S = 1.0
# A slice that ends for a pause says so.
SHORTEST_PAUSE_S = 0.1


class Slices:
    def __init__(
        self,
        parts: RunParts,
        fanout: Fanout,
        abandoned: AbandonedCalls,
        slots: Slots,
        *,
        seconds: float,
        max_steps: int,
    ) -> None:
        self.context = parts.context
        self.loop = parts.loop
        self.model_caller = parts.model_caller
        self.tool_caller = parts.tool_caller
        self.watching = Watching(parts.context, fanout)
        self.abandoned = abandoned
        self.slots = slots
        self.seconds = seconds
        self.max_steps = max_steps

    @activity.defn(name=SLICE)
    async def run(self, run_input: RunInput) -> SliceEnd:
        act_as_agent(run_input)
        async with heartbeats() as pulse:
            if activity.is_worker_shutdown():
                end = SliceEnd("again", stopped=True)
            elif await self.slots.take(run_input):
                try:
                    end = await Slice(self, run_input, pulse).run()
                finally:
                    self.slots.give_back(run_input)
            else:
                await retry_database(partial(self.slots.queue, run_input))
                end = SliceEnd("wait")
        SLICES.labels(end.kind).inc()
        return end


class Slice:
    """One slice of one run."""

    def __init__(self, parts: Slices, run_input: RunInput, pulse: Pulse) -> None:
        self._parts = parts
        self._run_input = run_input
        self._pulse = pulse
        self._history = History()
        # The finished calls of the run.
        self._finished = 0
        self._steps = 0
        self._has_called = False
        self._ends_at = time.monotonic() + parts.seconds
        # What was read in the transaction before the next model call.
        self._prepared: ModelCallInput | None = None
        # Calls that were marked as started in the transaction that planned them.
        self._started: dict[int, Started | NextStep] = {}

    async def run(self) -> SliceEnd:
        try:
            next_step = await retry_database(self._begin)
            while next_step.kind in ("think", "act"):
                if self._is_over() and not self._started:
                    stopped = activity.is_worker_shutdown()
                    return self._end("again", stopped=stopped)
                next_step = await self._do(next_step)
                self._has_called = True
        except BackOff as pause:
            return self._end("again", after_s=pause.seconds)
        except FencedOut:
            # The next slice, if there is one, finds out what is next.
            log.info("slice_fenced_out", run=activity.info().workflow_id)
            return self._end("again")
        return self._end("end" if next_step.kind == "end" else "wait")

    def _end(self, kind: SliceKind, *, after_s: float = 0, stopped: bool = False) -> SliceEnd:
        return SliceEnd(kind, self._finished, after_s, stopped, self._run_input.fence)

    def _is_over(self) -> bool:
        if activity.is_worker_shutdown():
            return True
        # Every slice makes at least one call, however slow the machine is.
        used_up = self._steps >= self._parts.max_steps or time.monotonic() >= self._ends_at
        return used_up and self._has_called

    async def _begin(self) -> NextStep:
        """Takes the run over, and returns what is next."""
        # It may have begun before, in a transaction that failed.
        self._run_input = run_input = replace(self._run_input, fence=None)
        if self._pulse.stopped:
            # Temporal may have given the run to another worker, which must keep it.
            raise FencedOut
        async with self._parts.context.locked(run_input) as (tx, task):
            if task is None or task.status in TERMINAL:
                return NextStep("end")
            if await places.is_queued(tx, task):
                return NextStep("wait")
            is_new = task.status == "PENDING" and not (run_input.resume or task.forked_step)
            if task.status == "PENDING":
                if not task.limited:
                    QUEUE_SECONDS.observe((clock.now() - task.updated_at).total_seconds())
                if run_input.resume:
                    await steps.copy_kept(tx, task)
                if task.forked_step and task.run > 1:
                    # Also from failure: the previous run may have ended before it began.
                    await forked_steps.copy_again(tx, task)
                raised = replace(task, fence=task.fence + 1)
                task = await transitions.apply(tx, task, raised, "RUNNING", Trigger.RUN)
            else:
                task = await queries.raise_fence(tx, task)
            self._run_input = replace(run_input, fence=task.fence)
            if is_new:
                return await self._prepare(tx, task, NextStep("think", 1), [], is_new=True)
            rows = await steps.of_run(tx, task.id, task.run)
            self._finished = sum(row.state == "finished" for row in rows)
            next_step = await self._parts.loop.advance(tx, task, rows)
            if rows:
                self._history.settle(rows, rows[-1].step)
            return await self._prepare(tx, task, next_step)

    async def _advance(self) -> NextStep:
        """What is next according to the rows."""
        async with self._parts.context.locked(self._run_input) as (tx, task):
            assert task is not None
            next_step = await self._parts.loop.advance(tx, task)
            return await self._prepare(tx, task, next_step)

    async def _prepare(
        self,
        tx: AccountTransaction,
        task: Task,
        next_step: NextStep,
        newer: list[Step] | None = None,
        *,
        is_new: bool = False,
    ) -> NextStep:
        """Reads what a model call needs, if one is next, and says that it starts."""
        if next_step.kind == "think":
            self._prepared = await self._parts.model_caller.prepare(
                tx, task, next_step.step, self._history, newer
            )
            if self._prepared is not None and not self._prepared.answered:
                await step_events.model_call_starts(tx, task.run_id, next_step.step, is_new=is_new)
        return next_step

    async def _do(self, next_step: NextStep) -> NextStep:
        if self._pulse.stopped and not await retry_database(
            lambda: self._parts.context.holds_fence(self._run_input)
        ):
            raise FencedOut
        call_input = CallInput(self._run_input, next_step.step)
        try:
            if next_step.kind == "think":
                found = await self._call_model(call_input)
            else:
                found = await self._call_tools(next_step)
        except GiveUp as error:
            return await self._fail(error.code, error.message, retryable=error.retryable)
        except Exhausted as error:
            return await self._fail(error.code, error.message, retryable=True)
        return found if found is not None else await retry_database(self._advance)

    async def _finishes(self, call: "asyncio.Future[Any]") -> bool:
        """Waits for a call. Returns False if the slice has lost its run before the call ended."""
        finished = await self._parts.watching.finishes_before_loss(call, self._run_input)
        if not finished:
            self._history.lost = True
        return finished

    async def _fail(self, code: str, message: str, *, retryable: bool) -> NextStep:
        async def fail() -> NextStep:
            async with self._parts.context.locked(self._run_input) as (tx, task):
                assert task is not None
                # Decisions are applied first, so that a retry from failure continues from them.
                next_step = await self._parts.loop.advance(tx, task)
                if task.status != "RUNNING" or next_step.kind == "end":
                    return next_step
                return await self._parts.loop.fail(tx, task, code, message, retryable=retryable)

        return await retry_database(fail)

    # Model calls.

    async def _call_model(self, call_input: CallInput) -> NextStep | None:
        calling = asyncio.create_task(self._make_model_call(call_input))
        try:
            kept = await self._finishes(calling)
        except asyncio.CancelledError:
            self._history.lost = True
            details = activity.cancellation_details()
            if details is None or details.worker_shutdown:
                calling.cancel()
            else:
                await self._parts.abandoned.add(calling)
            raise
        if not kept:
            await self._parts.abandoned.add(calling)
            raise FencedOut
        failure: TryAgain | None = None
        try:
            next_step = calling.result()
        except TryAgain as error:
            log.warning("model_call_failed", error=str(error))
            failure = error
        except AccountBusy as busy:
            # The answer stays, and nothing has failed.
            log.info("run_waits_for_turn", run=activity.info().workflow_id, reason=str(busy))
            turn_in_s = partial(self._parts.model_caller.turn_in_s, call_input, busy)
            raise BackOff(await retry_database(turn_in_s)) from None
        except ToolUnavailable:
            pass
        else:
            self._steps += 1
            self._finished += next_step is not None and next_step.kind != "wait"
            return next_step
        code = MODEL_UNAVAILABLE if failure else TOOL_UNAVAILABLE
        failed, chain = await retry_database(
            lambda: self._parts.model_caller.count_failure(call_input)
        )
        seconds = MODEL_ATTEMPTS.pause_s(code, failed, len(chain))
        if failure is not None:
            # Another model may take over at once.
            seconds = chain.pause_s(seconds, failure.without)
        await self._pause(seconds)
        return NextStep("think", call_input.step)

    async def _make_model_call(self, call_input: CallInput) -> NextStep | None:
        prepared, self._prepared = self._prepared, None
        with span_of(CALL_MODEL, call_input):
            return await self._parts.model_caller.call(
                call_input, start=prepared, history=self._history, start_calls=self._start_calls
            )

    async def _start_calls(
        self, tx: AccountTransaction, task: Task, agent: AgentVersion, planned: list[Step]
    ) -> None:
        """Marks the first tool calls of an answer as started when they are planned."""
        self._started = {}
        if not self._history.lost and not activity.is_worker_shutdown():
            self._started = await self._parts.tool_caller.start_in(
                tx, task, agent, planned[:CALLS_AT_ONCE], are_new=True
            )

    async def _pause(self, seconds: float) -> None:
        """Waits before the next attempt of a call. A long pause ends the slice."""
        if seconds > PAUSE_INSIDE_S or time.monotonic() + seconds >= self._ends_at:
            raise BackOff(max(seconds, SHORTEST_PAUSE_S))
        await asyncio.sleep(seconds)

    # Tool calls.

    async def _call_tools(self, next_step: NextStep) -> NextStep | None:
        """Makes the tool calls of a step. None if the rows say what is next."""
        step, left = next_step.step, list(next_step.calls)
        outcomes: list[NextStep | Stop] = []
        while left:
            started, self._started = self._started, {}
            if not started:
                if outcomes and activity.is_worker_shutdown():
                    return None
                started = await retry_database(partial(self._start, step, left[:CALLS_AT_ONCE]))
            if not started:
                return None
            # If one call fails, the others still finish: no call is left running unobserved.
            making = asyncio.gather(
                *[self._make(step, *each) for each in started.items()], return_exceptions=True
            )
            try:
                kept = await self._finishes(making)
            except asyncio.CancelledError:
                await abort(making)
                raise
            if not kept:
                await abort(making)
                raise FencedOut
            for outcome in making.result():
                if not isinstance(outcome, NextStep | Stop):
                    raise outcome
                outcomes.append(outcome)
            if WAITS_FOR_PERSON in started.values():
                break
            left = [call for call in left if call not in started]
        return self._next_after(step, outcomes, complete=not left)

    def _next_after(
        self, step: int, outcomes: list[NextStep | Stop], *, complete: bool
    ) -> NextStep | None:
        for failure in outcomes:
            if isinstance(failure, Exhausted):
                raise failure
        pauses = [pause.seconds for pause in outcomes if isinstance(pause, BackOff)]
        if pauses:
            # All calls that failed can be made again then.
            raise BackOff(max(pauses))
        if complete and all(outcome == CALL_FINISHED for outcome in outcomes):
            return NextStep("think", step + 1)
        return None

    async def _start(self, step: int, calls: list[int]) -> dict[int, Started | NextStep]:
        return await self._parts.tool_caller.start(self._run_input, step, calls)

    async def _make(self, step: int, call: int, started: "Started | NextStep") -> NextStep:
        """Makes one call, again after a short pause if it fails and can be repeated."""
        call_input = CallInput(self._run_input, step, call)
        tool_caller = self._parts.tool_caller
        while isinstance(started, Started):
            try:
                with span_of(CALL_TOOL, call_input):
                    stored = self._history.result_characters
                    outcome = await tool_caller.make(call_input, started, stored)
            except ToolUnavailable as unavailable:
                code, retry_after_s = TOOL_UNAVAILABLE, unavailable.retry_after_s
            except ApplicationError:
                code, retry_after_s = TOOL_FAILED, 0
            else:
                self._finished += outcome == CALL_FINISHED
                return outcome
            failed = await retry_database(lambda: tool_caller.count_failure(call_input))
            await self._pause(max(retry_after_s, TOOL_ATTEMPTS.pause_s(code, failed)))
            again = await retry_database(lambda: self._start(step, [call]))
            started = again.get(call, NextStep("wait"))
        return started
