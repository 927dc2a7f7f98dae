"""Handles the outbox's instructions about runs: starts, cancels and wakes them in Temporal.

Each handler can be called more than once for the same instruction. Starting a run that exists and
cancelling a run that has ended do nothing. After a start, the instruction stays in the outbox as a
periodic check: if Temporal has lost the run, the check starts it again from its rows. A run has one
check, which is deleted when its task ends.
"""

import contextlib
import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

from temporalio.client import WorkflowHandle
from temporalio.common import Priority
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from rota.events.outbox import Handler, Instruction, Reschedule, Unavailable
from rota.platform import ids
from rota.platform.db import Database
from rota.platform.temporal import Temporal
from rota.runs.contracts import SLICES_QUEUE, RunInput, workflow_id
from rota.runs.workflow import TaskRun
from rota.tasks import queries
from rota.tasks.states import Status
from rota.tasks.transitions import CANCEL, CHECK, QUEUED, START, WAKE

CHECK_EVERY_S = 900

# Errors of Temporal that another attempt does not change. All others are outages.
_REFUSED = (
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.OUT_OF_RANGE,
)


class RunDispatcher:
    def __init__(
        self,
        temporal: Temporal,
        db: Database,
        *,
        heartbeat_s: float,
        may_skip_queue: Callable[[], bool] = lambda: False,
    ) -> None:
        self._temporal = temporal
        self._db = db
        self._heartbeat_s = heartbeat_s
        # Whether this worker may take the runs that it starts.
        self._may_skip_queue = may_skip_queue

    @property
    def handlers(self) -> dict[str, Handler]:
        found = {
            START: self.start,
            CANCEL: self.cancel,
            WAKE: self.wake,
            QUEUED: self.wake,
            CHECK: self.check,
        }
        return {kind: functools.partial(_naming_outages, call) for kind, call in found.items()}

    async def start(self, instruction: Instruction) -> Reschedule | None:
        task_id, run = _names(instruction)
        run_input = RunInput(
            account_id=ids.to_wire("acct", instruction.account_id),
            task_id=task_id,
            run=run,
            resume=instruction.payload.get("start_at") == "failure",
            heartbeat_s=self._heartbeat_s,
            trace=instruction.payload.get("trace"),
            start_fence=instruction.payload.get("fence"),
        )
        client = await self._temporal.client()
        with contextlib.suppress(WorkflowAlreadyStartedError):
            await client.start_workflow(
                TaskRun.run,
                run_input,
                id=workflow_id(task_id, run),
                task_queue=SLICES_QUEUE,
                # A worker that does not respond counts as dead, as it does during calls.
                task_timeout=timedelta(seconds=min(10, self._heartbeat_s)),
                priority=Priority(
                    priority_key=priority_key(instruction.payload.get("priority", 0)),
                    # Many tasks of one account do not delay the tasks of another.
                    fairness_key=instruction.account_id.hex,
                    fairness_weight=instruction.payload.get("weight", 1.0),
                ),
                # The run then skips Temporal's queue, where the accounts take turns.
                request_eager_start=self._may_skip_queue(),
            )
        return _check_later(instruction)

    async def check(self, instruction: Instruction) -> Reschedule | None:
        # A run that waits for a person needs no check: the decision wakes it or starts it again.
        return await self._start_again(instruction, "PENDING", "RUNNING")

    async def cancel(self, instruction: Instruction) -> Reschedule | None:
        await _exists((await self._handle(instruction)).cancel())
        return None

    async def wake(self, instruction: Instruction) -> Reschedule | None:
        if await _exists((await self._handle(instruction)).signal(TaskRun.wake)):
            # A run that only looks again is not new, so it is checked already.
            return None if instruction.payload.get("again") else _check_later(instruction)
        # The start of a PENDING run is in the outbox too, and only that says where the run starts.
        return await self._start_again(instruction, "RUNNING")

    async def _start_again(self, instruction: Instruction, *statuses: Status) -> Reschedule | None:
        """Starts a run that Temporal has lost, if its task has one of these statuses."""
        assert instruction.task_id is not None
        async with self._db.read(instruction.account_id) as tx:
            task = await queries.find(tx, instruction.task_id)
        if task is None or task.run != instruction.payload["run"] or task.status not in statuses:
            return None
        payload = {**instruction.payload, "fence": task.fence}
        return await self.start(replace(instruction, payload=payload))

    # Runs that earlier versions started have another workflow, with the same signal.
    async def _handle(self, instruction: Instruction) -> WorkflowHandle[TaskRun, None]:
        client = await self._temporal.client()
        return client.get_workflow_handle_for(TaskRun.run, workflow_id(*_names(instruction)))


def priority_key(priority: float) -> int:
    """Maps a task's priority, 0 to 10, to Temporal's, 5 to 1. Temporal runs 1 first."""
    return 5 - round(priority / 10 * 4)


async def _naming_outages(handler: Handler, instruction: Instruction) -> Reschedule | None:
    try:
        return await handler(instruction)
    except RPCError as error:
        if error.status in _REFUSED:
            raise
        raise Unavailable(f"Temporal: {error.status.name}: {error.message}") from error
    except RuntimeError as error:
        # The client raises it when it cannot connect.
        raise Unavailable(f"Temporal: {error}") from error


def _check_later(instruction: Instruction) -> Reschedule:
    key = f"{CHECK}/{instruction.task_id}/{instruction.payload['run']}"
    return Reschedule(CHECK, CHECK_EVERY_S, key)


def _names(instruction: Instruction) -> tuple[str, int]:
    assert instruction.task_id is not None
    return ids.to_wire("task", instruction.task_id), int(instruction.payload["run"])


async def _exists(call: Awaitable[None]) -> bool:
    try:
        await call
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True
