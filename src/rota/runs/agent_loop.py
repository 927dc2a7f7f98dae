"""The agent loop: what a run does after the model, a tool, a person or a subtask has answered.

Everything here works on rows in the database, inside the caller's transaction. Nothing calls out.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog
from prometheus_client import Counter
from pydantic_ai.messages import ModelResponse

from rota.agents.model import AgentVersion
from rota.platform.db import AccountTransaction
from rota.runs import (
    answers,
    gate_items,
    standing_rules,
    step_events,
    steps,
    tool_steps,
    transcript,
)
from rota.runs.answers import Answer, UnusableAnswer
from rota.runs.bounds import DeadlineExceeded, is_past_deadline
from rota.runs.contracts import NextStep
from rota.runs.model_errors import (
    ModelAuthenticationFailed,
    ModelNotConfigured,
    ModelNotFound,
    ModelQuotaExceeded,
    ModelWithoutPrice,
)
from rota.runs.steps import State, Step
from rota.runs.tool_steps import PlannedCall
from rota.runs.tools import Tool, asks_person, model_name
from rota.tasks import (
    cancellation,
    gates,
    places,
    queries,
    review_queries,
    seals,
    shaping,
    transitions,
)
from rota.tasks.model import Review, ReviewItem, Task
from rota.tasks.states import TERMINAL, Gate, Trigger

log = structlog.get_logger()

FAILURES = Counter("rota_run_failures_total", "Failed runs, by error code.", ["code"])
for _failure in (
    ModelAuthenticationFailed,
    ModelNotConfigured,
    ModelNotFound,
    ModelQuotaExceeded,
    ModelWithoutPrice,
):
    # An alert reports the first one. Without a zero before it, there would be no increase.
    FAILURES.labels(_failure.code)
REFUSED = Counter(
    "rota_run_refused_answers_total", "Answers that could not be used, by error code.", ["code"]
)

# Starts planned calls of a run, in the transaction that planned them.
Start = Callable[[AccountTransaction, Task, AgentVersion, list[Step]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ResponsePlan:
    """What the response of a model means for its run."""

    response: ModelResponse
    # What `stored_answers.plan_calls` has made of the response.
    calls: Sequence[PlannedCall]
    # None if the response requests tool calls, or is a summary.
    answer: Answer | None
    is_summary: bool = False


class AgentLoop:
    def __init__(self, *, gate_time: timedelta) -> None:
        self._gate_time = gate_time

    async def advance(
        self, tx: AccountTransaction, task: Task, rows: list[Step] | None = None
    ) -> NextStep:
        """Applies new decisions and results of subtasks to the steps, and returns what is next.

        `rows` are the calls of the last step at least, if they are known.
        """
        if task.status == "WAITING_APPROVAL":
            return NextStep("wait")
        if task.status != "RUNNING":
            return NextStep("end")
        if is_past_deadline(task):
            await self.apply_decisions(tx, task, rows)
            return await self.miss_deadline(tx, task)
        if await places.is_queued(tx, task):
            return NextStep("wait")
        return await self.apply_decisions(tx, task, rows)

    async def apply_decisions(
        self, tx: AccountTransaction, task: Task, rows: list[Step] | None = None
    ) -> NextStep:
        """Like `advance`, for a RUNNING task, also if it has no time or place to continue.

        A retry from failure then continues from the decisions that people made before.
        """
        if rows is None:
            rows = await steps.of_last_step(tx, task.id, task.run)
        if not rows:
            return NextStep("think", 1)
        last = rows[-1].step
        model_call = next(row for row in rows if row.step == last and row.call == 0)
        if model_call.state in ("planned", "started"):
            # The call has failed before. Or its answer is charged, but not applied yet.
            return NextStep("think", last)
        if model_call.kind == "summary":
            return NextStep("think", last + 1)
        tool_calls = [row for row in rows if row.step == last and row.kind == "tool"]
        if not tool_calls:
            newest = await review_queries.newest(tx, task.id)
            # A person rejected the answer and wants the agent to continue.
            rejected = (task.run, "output", "rejected")
            if (
                model_call.note is None
                and newest is not None
                and (newest.run, newest.gate, newest.state) == rejected
            ):
                note = transcript.rejection("answer", newest)
                await steps.add_note(tx, task.id, model_call, note)
            return NextStep("think", last + 1)
        ready: list[int] = []
        waiting = False
        open_ids = [row.item_id for row in tool_calls if row.state in ("gated", "planned")]
        reviews = await review_queries.newest_of_items(tx, task.id, open_ids, run=task.run)
        for row in tool_calls:
            state = await self._update_call(tx, task, row, reviews.get(row.item_id))
            if state == "delegated":
                waiting = True
            elif state != "finished":
                ready.append(row.call)
        if ready:
            return NextStep("act", last, ready)
        return NextStep("wait") if waiting else NextStep("think", last + 1)

    async def _update_call(
        self, tx: AccountTransaction, task: Task, row: Step, review: Review | None
    ) -> State:
        """Applies the decision about a tool call or its subtask's end. Returns its state.

        `review` is the newest of this call. A later review can be about another call.
        """
        if row.state == "delegated":
            return await self._update_delegated_call(tx, task, row)
        if row.state not in ("gated", "planned"):
            return row.state
        if review is None:
            # A call that was copied from an earlier run before a person decided stays gated. When
            # it starts, a gate opens.
            return row.state
        item = next(item for item in review.items if item["id"] == row.item_id)
        if row.state == "planned" and item["decision"] != "rejected":
            # It is not a call that a rule covered until a person rejected it with others.
            return "planned"
        if item["decision"] == "approved":
            return await self.apply_approval(tx, task, row, item)
        # A call that was started may have taken effect, and the model has to know that.
        text = (
            transcript.unknown_outcome(review)
            if row.may_have_effect
            else transcript.rejection("call", review)
        )
        await tool_steps.finish(tx, task.id, row, text, "rejected")
        return "finished"

    async def apply_approval(
        self, tx: AccountTransaction, task: Task, row: Step, item: ReviewItem
    ) -> State:
        """Applies an approved item of a review to its call. Returns the call's state."""
        if asks_person(row):
            answer = (item["arguments"] or {}).get("answer") or "Approved without an answer."
            await tool_steps.finish(tx, task.id, row, answer, "ok")
            return "finished"
        await tool_steps.approve(tx, task.id, row, item)
        return "planned"

    async def _update_delegated_call(self, tx: AccountTransaction, task: Task, row: Step) -> State:
        assert row.child_task_id is not None
        child = await queries.find(tx, row.child_task_id)
        if child is not None and child.status not in TERMINAL:
            return "delegated"
        if child is not None:
            await shaping.hand_up(tx, child.id, task.id)
        if child is not None and child.status == "COMPLETED":
            await tool_steps.finish(tx, task.id, row, child.output or "", "ok")
        else:
            why = (child.error or {}).get("message") if child and child.error else None
            status = child.status if child else "DELETED"
            text = f"The subtask did not complete. Its status is {status}. {why or ''}".strip()
            await tool_steps.finish(tx, task.id, row, text, "failed")
        return "finished"

    async def apply_response(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        step: int,
        plan: ResponsePlan,
        tools: Mapping[str, Tool],
        start: Start | None = None,
    ) -> NextStep:
        """Stores the tool calls that the model requests, opens a gate, or completes the task.

        `start` gets the calls that can be made at once, in the same transaction.
        """
        if plan.is_summary:
            return await self._apply_summary(tx, task, step, plan.response)
        if plan.answer is not None:
            return await self._apply_answer(tx, task, agent, step, plan.answer)
        planned, requested = plan.calls, len(plan.response.tool_calls)
        if requested > len(planned):
            model_call = await steps.one(tx, task.id, task.run, step, 0)
            assert model_call is not None
            note = transcript.too_many_calls(requested, len(planned))
            await steps.add_note(tx, task.id, model_call, note)
        covered = await standing_rules.covered_calls(tx, task, planned, tools)
        planned = [
            replace(call, gated=False) if number in covered else call
            for number, call in enumerate(planned, 1)
        ]
        rows = await tool_steps.store_planned(tx, task.id, task.run, step, planned)
        refused = [row for row in rows if row.state == "finished"]
        await step_events.tool_calls_finished(tx, task.id, refused)
        items: list[ReviewItem] = []
        ready: list[Step] = []
        words = transcript.words_beside_calls(plan.response)
        for row in rows:
            if row.state == "planned":
                ready.append(row)
            if row.state == "gated" or row.call in covered:
                tool = tools[model_name(row.server, row.name)]
                item = gate_items.of_call(agent, row, tool, words, None)
                rule = covered.get(row.call)
                items.append(standing_rules.approved(item, rule) if rule else item)
        if any(row.state == "gated" for row in rows):
            return await self._open_gate(tx, task, "tool", items)
        if not ready:
            return NextStep("think", step + 1)
        if start is not None:
            await start(tx, task, agent, ready)
        return NextStep("act", step, [row.call for row in ready])

    async def _apply_answer(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        step: int,
        answer: Answer,
    ) -> NextStep:
        if answer.problem is not None:
            return await self._refuse_answer(tx, task, step, answer.problem)
        if agent.asks_before_output:
            item = gate_items.of_output(task, step, answer)
            return await self._open_gate(tx, task, "output", [item])
        after = replace(task, output=answer.output)
        await transitions.apply(tx, task, after, "COMPLETED", Trigger.RUN)
        return NextStep("end")

    async def _refuse_answer(
        self, tx: AccountTransaction, task: Task, step: int, problem: UnusableAnswer
    ) -> NextStep:
        """Asks the model to answer again, unless it has had its chances."""
        *earlier, model_call = await steps.model_calls(tx, task.id, task.run)
        # Also before the run fails: a retry from failure continues with the note.
        await steps.refuse_answer(tx, task.id, model_call, problem.note)
        REFUSED.labels(problem.code).inc()
        if answers.ends_run(earlier, task.output_schema):
            return await self.fail(
                tx, task, problem.code, problem.message, retryable=problem.retryable
            )
        return NextStep("think", step + 1)

    async def miss_deadline(self, tx: AccountTransaction, task: Task) -> NextStep:
        """Ends the run of a task whose deadline has passed."""
        assert task.deadline is not None
        error = DeadlineExceeded(task.deadline)
        return await self.fail(
            tx,
            task,
            error.code,
            error.message,
            retryable=error.retryable,
            trigger=Trigger.DEADLINE,
        )

    async def _apply_summary(
        self, tx: AccountTransaction, task: Task, step: int, response: ModelResponse
    ) -> NextStep:
        """Uses a summary from the next call on. The second unusable one in a row ends the run."""
        problem = answers.problem_with_summary(response)
        if problem is None:
            return NextStep("think", step + 1)
        *earlier, summary = await steps.model_calls(tx, task.id, task.run)
        await steps.refuse_answer(tx, task.id, summary, None)
        REFUSED.labels(problem.code).inc()
        if answers.is_refused_summary(earlier[-1]):
            return await self.fail(
                tx, task, problem.code, problem.message, retryable=problem.retryable
            )
        return NextStep("think", step + 1)

    async def fail(
        self,
        tx: AccountTransaction,
        task: Task,
        code: str,
        message: str,
        *,
        retryable: bool,
        trigger: Trigger = Trigger.RUN,
    ) -> NextStep:
        """Ends the run, and cancels the subtasks that it is waiting for."""
        error = {"code": code, "message": message, "retryable": retryable}
        await transitions.apply(tx, task, replace(task, error=error), "FAILED", trigger)
        delegated = await steps.delegated_calls(tx, task.id, task.run)
        at_once = cancellation.BATCH // max(1, len(delegated))
        for row in delegated:
            assert row.child_task_id is not None
            child = await queries.find(tx, row.child_task_id)
            if child is not None and child.status not in TERMINAL:
                why = "The parent task failed."
                await cancellation.cancel(
                    tx, child, child, Trigger.CANCEL, reason=why, at_once=at_once
                )
                # A retry from failure delegates again.
                await tool_steps.set_state(tx, task.id, row, "planned")
        FAILURES.labels(code).inc()
        return NextStep("end")

    async def reopen_gate(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        row: Step,
        tool: Tool,
        reason: str | None,
        *,
        maybe_made: bool = False,
    ) -> NextStep:
        """Sends a tool call back to a person, because the decision about it no longer applies.

        Without a reason, the policy is the reason.
        """
        sealed = tool.seal(row.sealed_arguments)
        await tool_steps.gate_again(
            tx, task.id, row, sealed, read_only=tool.read_only, maybe_made=maybe_made
        )
        words = await gate_items.words_beside(tx, task, row)
        item = gate_items.of_call(agent, replace(row, sealed=sealed), tool, words, reason)
        return await self._open_gate(tx, task, "tool", [item])

    async def _open_gate(
        self, tx: AccountTransaction, task: Task, gate: Gate, items: list[ReviewItem]
    ) -> NextStep:
        await transitions.apply(tx, task, task, "WAITING_APPROVAL", Trigger.RUN)
        subject = seals.items(items)
        await gates.open_gate(tx, task, gate, self._gate_time, subject, items)
        return NextStep("wait")
