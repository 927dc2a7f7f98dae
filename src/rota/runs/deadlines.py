"""Ends tasks whose deadline has passed.

The instruction in the outbox is due at the deadline. A run also looks whenever it decides what is
next and before it starts calls, and a decision that comes after the deadline is refused.
"""

from collections.abc import Mapping

from rota.events.outbox import Handler, Instruction, Reschedule
from rota.platform import clock
from rota.platform.db import AccountTransaction
from rota.runs import steps, tool_steps, transcript
from rota.runs.agent_loop import AgentLoop
from rota.runs.run_context import RunContext
from rota.runs.steps import Step
from rota.runs.tools import asks_person
from rota.tasks import gates, queries, review_queries, transitions
from rota.tasks.model import Task
from rota.tasks.states import TERMINAL, Trigger


class Deadlines:
    def __init__(self, context: RunContext, loop: AgentLoop) -> None:
        self._context = context
        self._loop = loop

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {transitions.DEADLINE: self.end}

    async def end(self, instruction: Instruction) -> Reschedule | None:
        """Fails the task, whatever it is doing or waiting for."""
        assert instruction.task_id is not None
        async with self._context.db.write(instruction.account_id) as tx:
            task = await queries.find_for_change(tx, instruction.task_id)
            if task is None or task.status in TERMINAL or task.deadline is None:
                return None
            left_s = (task.deadline - clock.now()).total_seconds()
            if left_s > 0:
                return Reschedule(transitions.DEADLINE, left_s)
            await self._leave_undecided(tx, task)
            await gates.close_review(tx, task, "expired", "The deadline of the task passed.")
            await self._loop.miss_deadline(tx, task)
        return None

    async def fail(
        self, tx: AccountTransaction, task: Task, code: str, message: str, *, reason: str
    ) -> None:
        """Fails an open task for another reason, whatever it is doing or waiting for."""
        await self._leave_undecided(tx, task)
        await gates.close_review(tx, task, "expired", reason)
        await self._loop.fail(tx, task, code, message, retryable=True, trigger=Trigger.DEADLINE)

    async def _leave_undecided(self, tx: AccountTransaction, task: Task) -> None:
        """Prepares what waits for a person for a retry from failure. What a person has decided, but
        the run has not read yet, stays decided."""
        if task.status == "RUNNING":
            await self._loop.apply_decisions(tx, task)
        review = (await review_queries.pending(tx, [task.id])).get(task.id)
        if review is None:
            return
        if review.gate == "output":
            await steps.add_note(
                tx, task.id, await _last_answer(tx, task), transcript.ANSWER_NOT_DECIDED
            )
        agent = await self._context.agent(tx, task)
        items = {item["id"]: item for item in review.items}
        for row in await steps.gated_calls(tx, task.id, task.run):
            item = items.get(row.item_id)
            if item is not None and item["decision"] == "approved":
                await self._loop.apply_approval(tx, task, row, item)
                continue
            asks = asks_person(row)
            by_policy = agent.asks_before(f"{row.server}/{row.name}", read_only=row.read_only)
            if asks or row.may_have_effect or not by_policy:
                # If the call were planned again, nothing would ask a person about it.
                text = transcript.not_decided(asks=asks, maybe_made=row.may_have_effect)
                await tool_steps.finish(tx, task.id, row, text, "rejected")
            else:
                await tool_steps.set_state(tx, task.id, row, "planned")


async def _last_answer(tx: AccountTransaction, task: Task) -> Step:
    rows = await steps.of_last_step(tx, task.id, task.run)
    return rows[0]
