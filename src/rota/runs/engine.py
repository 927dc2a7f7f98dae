"""The relay's handlers: they carry a task's instructions over to Temporal.

Each may be called more than once for the same instruction; a run that is there
already, or is gone already, is what was wanted.
"""

import contextlib
from datetime import timedelta

from temporalio.client import WorkflowHandle
from temporalio.common import Priority
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from rota.events.outbox import Handler, Instruction
from rota.platform import ids
from rota.platform.temporal import Temporal
from rota.runs.orders import TASK_QUEUE, RunOrder, workflow_id
from rota.runs.workflow import Run
from rota.tasks.moves import CANCEL, NUDGE, START


class Engine:
    def __init__(self, temporal: Temporal, *, heartbeat_s: float) -> None:
        self._temporal = temporal
        self._heartbeat_s = heartbeat_s

    @property
    def handlers(self) -> dict[str, Handler]:
        return {START: self.start, CANCEL: self.cancel, NUDGE: self.nudge}

    async def start(self, instruction: Instruction) -> None:
        task_id, run = _names(instruction)
        order = RunOrder(
            account_id=ids.to_wire("acct", instruction.account_id),
            task_id=task_id,
            run=run,
            resume=instruction.payload.get("start_at") == "failure",
            heartbeat_s=self._heartbeat_s,
        )
        client = await self._temporal.client()
        with contextlib.suppress(WorkflowAlreadyStartedError):
            await client.start_workflow(
                Run.run,
                order,
                id=workflow_id(task_id, run),
                task_queue=TASK_QUEUE,
                task_timeout=timedelta(seconds=10),
                priority=Priority(
                    priority_key=priority_key(instruction.payload.get("priority", 0)),
                    # One account's flood does not hold up another's few tasks.
                    fairness_key=instruction.account_id.hex,
                    fairness_weight=instruction.payload.get("weight", 1.0),
                ),
            )

    async def cancel(self, instruction: Instruction) -> None:
        await _unless_gone((await self._handle(instruction)).cancel())

    async def nudge(self, instruction: Instruction) -> None:
        await _unless_gone((await self._handle(instruction)).signal(Run.nudge))

    async def _handle(self, instruction: Instruction) -> WorkflowHandle[Run, None]:
        client = await self._temporal.client()
        return client.get_workflow_handle_for(Run.run, workflow_id(*_names(instruction)))


def priority_key(priority: float) -> int:
    """A task's 0 to 10 as the engine's 5 to 1, where 1 comes first."""
    return 5 - round(priority / 10 * 4)


def _names(instruction: Instruction) -> tuple[str, int]:
    assert instruction.task_id is not None
    return ids.to_wire("task", instruction.task_id), int(instruction.payload["run"])


async def _unless_gone(call: object) -> None:
    try:
        await call  # type: ignore[misc]
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
