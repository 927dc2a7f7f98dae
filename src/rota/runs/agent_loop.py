"""The agent loop: what a run does after the model, a tool, a person or a subtask has answered.

Everything here works on rows in the database, inside the caller's transaction. Nothing calls out.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelResponse, ToolCallPart

from rota.agents.model import AgentVersion
from rota.platform.db import AccountTransaction
from rota.runs import steps, transcript
from rota.runs.contracts import NextStep
from rota.runs.steps import PlannedCall, State, Step
from rota.runs.tools import ANSWER_SCHEMA, ASK_PERSON, Tool, model_name
from rota.tasks import queries, review_queries, transitions
from rota.tasks.model import Review, Task
from rota.tasks.schemas import MAX_TEXT
from rota.tasks.states import TERMINAL, Gate, Trigger


class AgentLoop:
    def __init__(self, *, gate_time: timedelta) -> None:
        self._gate_time = gate_time

    async def advance(self, tx: AccountTransaction, task: Task) -> NextStep:
        """Applies new decisions and results of subtasks to the steps, and returns what is next."""
        if task.status == "WAITING_APPROVAL":
            return NextStep("wait")
        if task.status != "RUNNING":
            return NextStep("end")
        rows = await steps.of_run(tx, task.id, task.run)
        if not rows:
            return NextStep("think", 1)
        last = rows[-1].step
        model_call = next(row for row in rows if row.step == last and row.kind == "model")
        if model_call.state == "started":
            # The answer is charged, but the run has not applied it yet.
            return NextStep("think", last)
        tool_calls = [row for row in rows if row.step == last and row.kind == "tool"]
        reviews = await review_queries.of_task(tx, task.id)
        if not tool_calls:
            newest = reviews[0] if reviews else None
            # A person rejected the answer and wants the agent to continue.
            if model_call.note is None and newest is not None and newest.state == "rejected":
                note = transcript.rejection("answer", newest)
                await steps.add_note(tx, task.id, model_call, note)
            return NextStep("think", last + 1)
        ready: list[int] = []
        waiting = False
        for row in tool_calls:
            state = await self._update_call(tx, task, row, reviews)
            if state == "delegated":
                waiting = True
            elif state != "finished":
                ready.append(row.call)
        if ready:
            return NextStep("act", last, ready)
        return NextStep("wait") if waiting else NextStep("think", last + 1)

    async def _update_call(
        self, tx: AccountTransaction, task: Task, row: Step, reviews: list[Review]
    ) -> State:
        """Applies the decision about a tool call or its subtask's end. Returns its state."""
        if row.state == "delegated":
            return await self._update_delegated_call(tx, task, row)
        if row.state != "gated":
            return row.state
        # The newest review of this call. A later review can be about another call.
        items = ((r, i) for r in reviews for i in r.items if i["id"] == row.item_id)
        # A call copied from the previous run has no review in this one: it counts as rejected.
        review, item = next(items, (reviews[0], {"decision": None}))
        if item["decision"] != "approved":
            # A call that was started may have taken effect, and the model has to know that.
            started = row.started_at is not None
            text = (
                transcript.unknown_outcome(review)
                if started
                else transcript.rejection("call", review)
            )
            await steps.finish(tx, task.id, row, text, "rejected")
            return "finished"
        if row.name == ASK_PERSON.name and row.server is None:
            answer = (item["arguments"] or {}).get("answer") or "Approved without an answer."
            await steps.finish(tx, task.id, row, answer, "ok")
            return "finished"
        await steps.set_state(tx, task.id, row, "planned", arguments=item["arguments"])
        return "planned"

    async def _update_delegated_call(self, tx: AccountTransaction, task: Task, row: Step) -> State:
        assert row.child_task_id is not None
        child = await queries.find(tx, row.child_task_id)
        if child is not None and child.status not in TERMINAL:
            return "delegated"
        if child is not None and child.status == "COMPLETED":
            await steps.finish(tx, task.id, row, child.output or "", "ok")
        else:
            why = (child.error or {}).get("message") if child and child.error else None
            status = child.status if child else "DELETED"
            text = f"The subtask did not complete. Its status is {status}. {why or ''}".strip()
            await steps.finish(tx, task.id, row, text, "failed")
        return "finished"

    async def apply_response(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        step: int,
        response: ModelResponse,
        tools: Mapping[str, Tool],
    ) -> NextStep:
        """Plans the tool calls that the model requests, opens a gate, or completes the task."""
        if not response.tool_calls:
            return await self._apply_answer(tx, task, agent, step, response)
        planned = [_plan(agent, call, tools) for call in response.tool_calls]
        await steps.plan_calls(tx, task.id, task.run, step, [call for call, _ in planned])
        rows = await steps.calls_of(tx, task.id, task.run, step)
        gated: list[Mapping[str, Any]] = []
        ready: list[int] = []
        for row, (call, problem) in zip(rows, planned, strict=True):
            if problem is not None:
                await steps.finish(tx, task.id, row, problem, "failed")
            elif call.gated:
                gated.append(_review_item(row, tools[model_name(call.server, call.name)], None))
            else:
                ready.append(row.call)
        if gated:
            return await self._open_gate(tx, task, "tool", gated)
        return NextStep("act", step, ready) if ready else NextStep("think", step + 1)

    async def _apply_answer(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        step: int,
        response: ModelResponse,
    ) -> NextStep:
        output = (response.text or "")[:MAX_TEXT]
        if agent.approval.output:
            item = {
                **_EMPTY_ITEM,
                "id": f"output-{task.run}-{step}",
                "arguments": {"output": output},
                "argumentsSchema": OUTPUT_SCHEMA,
                "reason": "The agent's policy requires approval of its output.",
            }
            return await self._open_gate(tx, task, "output", [item])
        after = replace(task, output=output)
        await transitions.apply(tx, task, after, "COMPLETED", Trigger.RUN)
        return NextStep("end")

    async def reopen_gate(
        self, tx: AccountTransaction, task: Task, row: Step, tool: Tool, reason: str
    ) -> NextStep:
        """Sends a tool call back to a person, because the decision about it no longer applies."""
        await steps.set_state(
            tx,
            task.id,
            row,
            "gated",
            definition_hash=tool.definition_hash,
            read_only=tool.read_only,
        )
        return await self._open_gate(tx, task, "tool", [_review_item(row, tool, reason)])

    async def _open_gate(
        self, tx: AccountTransaction, task: Task, gate: Gate, items: list[Mapping[str, Any]]
    ) -> NextStep:
        await transitions.apply(tx, task, task, "WAITING_APPROVAL", Trigger.RUN)
        await transitions.open_gate(tx, task, gate, self._gate_time, items)
        return NextStep("wait")


def _plan(
    agent: AgentVersion, call: ToolCallPart, tools: Mapping[str, Tool]
) -> tuple[PlannedCall, str | None]:
    """The call to make, and what is wrong with it, if anything."""
    tool = tools.get(call.tool_name)
    arguments: dict[str, Any] = {}
    problem: str | None
    try:
        arguments = transcript.storable(call.args_as_dict(raise_if_invalid=True))
    except (ValueError, AssertionError):
        problem = "The arguments must be a JSON object. Correct them and call the tool again."
    else:
        problem = transcript.problem_with(tool, arguments) if tool else None
    if tool is None:
        problem = f"Tool not found. Available tools: {', '.join(sorted(tools))}."
    planned = PlannedCall(
        name=tool.name if tool else call.tool_name,
        server=tool.server if tool else None,
        call_id=call.tool_call_id,
        read_only=tool.read_only if tool else True,
        arguments=arguments,
        definition_hash=tool.definition_hash if tool else "",
        gated=tool is not None and problem is None and _needs_approval(agent, tool),
    )
    return planned, problem


def _needs_approval(agent: AgentVersion, tool: Tool) -> bool:
    if tool is ASK_PERSON:
        return True
    return agent.approval.asks_before(tool.full_name, read_only=tool.read_only)


OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"output": {"type": "string", "maxLength": MAX_TEXT}},
    "required": ["output"],
    "additionalProperties": False,
}

_EMPTY_ITEM: dict[str, Any] = {
    "tool": None,
    "server": None,
    "decision": None,
    "decidedBy": None,
    "decidedAt": None,
}


def _review_item(row: Step, tool: Tool, reason: str | None) -> dict[str, Any]:
    asks = tool is ASK_PERSON
    return {
        **_EMPTY_ITEM,
        "id": row.item_id,
        "tool": row.name,
        "server": row.server,
        "arguments": row.arguments,
        "argumentsSchema": ANSWER_SCHEMA if asks else tool.arguments_schema,
        "reason": reason
        or (
            "The agent asks a question."
            if asks
            else "The agent's policy requires approval of this call."
        ),
        "definitionHash": tool.definition_hash,
    }
