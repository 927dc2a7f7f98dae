"""Ends tasks whose deadline has passed.

The instruction in the outbox is due at the deadline. A run also looks before each model call, and
a decision that comes after the deadline is refused. So a late worker changes nothing.
"""

from collections.abc import Mapping

from rota.events.outbox import Handler, Instruction, Reschedule
from rota.platform import clock
from rota.platform.db import Database
from rota.runs import steps, tool_steps, transcript
from rota.runs.agent_loop import AgentLoop
from rota.runs.bounds import DeadlineExceeded
from rota.runs.tools import ASK_PERSON
from rota.tasks import queries, transitions
from rota.tasks.states import TERMINAL, Trigger


class Deadlines:
    def __init__(self, db: Database, loop: AgentLoop) -> None:
        self._db = db
        self._loop = loop

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {transitions.DEADLINE: self.end}

    async def end(self, instruction: Instruction) -> Reschedule | None:
        """Fails the task, whatever it is doing or waiting for."""
        assert instruction.task_id is not None
        async with self._db.write(instruction.account_id) as tx:
            task = await queries.find_for_change(tx, instruction.task_id)
            if task is None or task.status in TERMINAL or task.deadline is None:
                return None
            left_s = (task.deadline - clock.now()).total_seconds()
            if left_s > 0:
                return Reschedule(transitions.DEADLINE, left_s)
            error = DeadlineExceeded(task.deadline)
            for row in await steps.gated_calls(tx, task.id, task.run):
                asks = row.name == ASK_PERSON.name and row.server is None
                if asks or row.maybe_made or row.started_at is not None:
                    text = transcript.not_decided(maybe_made=not asks)
                    await tool_steps.finish(tx, task.id, row, text, "rejected")
                else:
                    # A retry from failure asks a person again.
                    await tool_steps.set_state(tx, task.id, row, "planned")
            await transitions.close_review(tx, task, "expired", "The deadline of the task passed.")
            await self._loop.fail(
                tx,
                task,
                error.code,
                error.message,
                retryable=error.retryable,
                trigger=Trigger.DEADLINE,
            )
        return None
