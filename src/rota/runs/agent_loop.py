"""The agent loop: what the model is told, and what follows from what it says.

Everything here works on rows that are already in the database, inside a
transaction of the caller's. Nothing calls out.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)

from rota.agents.model import AgentVersion
from rota.platform.db import AccountTransaction
from rota.platform.schema import problems
from rota.runs import steps
from rota.runs.contracts import NextStep
from rota.runs.steps import PlannedCall, Step
from rota.runs.tools import ANSWER_SCHEMA, ASK_PERSON, Tool, model_name
from rota.tasks import queries, review_queries, transitions
from rota.tasks.model import Review, Task
from rota.tasks.schemas import MAX_TEXT
from rota.tasks.states import TERMINAL, Gate, Trigger

# What a model reads of one tool result. The timeline keeps more.
MAX_RESULT_CHARACTERS = 20_000


def messages(agent: AgentVersion, task: Task, rows: list[Step]) -> list[ModelMessage]:
    """The conversation so far, as the model gets it."""
    work = "\n\n".join(part for part in (f"# {task.name}", task.description, task.input) if part)
    found: list[ModelMessage] = [
        ModelRequest(parts=[SystemPromptPart(agent.instructions), UserPromptPart(work)])
    ]
    thoughts = [row for row in rows if row.kind == "model"]
    for thought in thoughts:
        found.append(response_of(thought))
        results = [r for r in rows if r.step == thought.step and r.kind == "tool"]
        if results:
            found.append(ModelRequest(parts=[_tool_return(row) for row in results]))
        if thought.note:
            found.append(ModelRequest(parts=[UserPromptPart(thought.note)]))
    return found


def response_of(thought: Step) -> ModelResponse:
    [message] = ModelMessagesTypeAdapter.validate_python([thought.result])
    assert isinstance(message, ModelResponse)
    return message


def storable(value: Any) -> Any:
    """The same without what PostgreSQL cannot hold: NUL, and halves of characters."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode(errors="replace").decode()
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def storable_response(response: ModelResponse) -> ModelResponse:
    parts = [
        replace(
            part,
            **{
                name: storable(getattr(part, name))
                for name in ("content", "tool_name", "tool_call_id", "args")
                if hasattr(part, name)
            },
        )
        for part in response.parts
    ]
    return replace(response, parts=parts)


def dump_response(response: ModelResponse) -> Any:
    return orjson.loads(ModelMessagesTypeAdapter.dump_json([response]))[0]


def _tool_return(row: Step) -> ToolReturnPart:
    text = row.result if isinstance(row.result, str) else orjson.dumps(row.result).decode()
    if len(text) > MAX_RESULT_CHARACTERS:
        text = text[:MAX_RESULT_CHARACTERS] + f"\n[cut: {len(text)} characters in all]"
    return ToolReturnPart(tool_name=row.name, content=text, tool_call_id=row.call_id or "")


class AgentLoop:
    def __init__(self, *, gate_time: timedelta) -> None:
        self._gate_time = gate_time

    async def look(self, tx: AccountTransaction, task: Task) -> NextStep:
        """What comes next, after taking in what people and subtasks have said meanwhile."""
        if task.status == "WAITING_APPROVAL":
            return NextStep("wait")
        if task.status != "RUNNING":
            return NextStep("end")
        rows = await steps.of_run(tx, task.id, task.run)
        if not rows:
            return NextStep("think", 1)
        last = rows[-1].step
        thought = next(row for row in rows if row.step == last and row.kind == "model")
        calls = [row for row in rows if row.step == last and row.kind == "tool"]
        reviews = await review_queries.of_task(tx, task.id)
        if not calls:
            newest = reviews[0] if reviews else None
            # A final answer that a person sent back, with words for the agent.
            if thought.note is None and newest is not None and newest.state == "rejected":
                await steps.note(tx, task.id, thought, _declined("answer", newest))
            return NextStep("think", last + 1)
        ready: list[int] = []
        waiting = False
        for row in calls:
            state = await self._settle_call(tx, task, row, reviews)
            if state == "delegated":
                waiting = True
            elif state != "finished":
                ready.append(row.call)
        if ready:
            return NextStep("act", last, ready)
        return NextStep("wait") if waiting else NextStep("think", last + 1)

    async def _settle_call(
        self,
        tx: AccountTransaction,
        task: Task,
        row: Step,
        reviews: list[Review],
    ) -> str:
        if row.state == "delegated":
            return await self._settle_child(tx, task, row)
        if row.state != "gated":
            return row.state
        # The newest review of this call; there may be a newer one of another call.
        items = ((r, i) for r in reviews for i in r.items if i["id"] == row.item_id)
        # Taken over from a run before, it has none: then it counts as not accepted.
        review, item = next(items, (reviews[0], {"decision": None}))
        if item["decision"] != "approved":
            # Where it was under way once, nobody knows, and the model must not think it does.
            text = _declined("call", review) if row.started_at is None else _unsure(review)
            await steps.finish(tx, task.id, row, text, "rejected")
            return "finished"
        if row.name == ASK_PERSON.name and row.server is None:
            answer = (item["arguments"] or {}).get("answer") or "Approved, without further words."
            await steps.finish(tx, task.id, row, answer, "ok")
            return "finished"
        await steps.set_state(tx, task.id, row, "planned", arguments=item["arguments"])
        return "planned"

    async def _settle_child(self, tx: AccountTransaction, task: Task, row: Step) -> str:
        assert row.child_task_id is not None
        child = await queries.find(tx, row.child_task_id)
        if child is not None and child.status not in TERMINAL:
            return "delegated"
        if child is not None and child.status == "COMPLETED":
            await steps.finish(tx, task.id, row, child.output or "", "ok")
        else:
            why = (child.error or {}).get("message") if child and child.error else None
            text = f"The subtask ended as {child.status if child else 'GONE'}. {why or ''}".strip()
            await steps.finish(tx, task.id, row, text, "failed")
        return "finished"

    async def take_in(
        self,
        tx: AccountTransaction,
        task: Task,
        agent: AgentVersion,
        step: int,
        response: ModelResponse,
        tools: Mapping[str, Tool],
    ) -> NextStep:
        """Acts on what the model has just said: calls to make, people to ask, or the end."""
        if not response.tool_calls:
            return await self._answer(tx, task, agent, step, response)
        planned = [self._plan(agent, call, tools) for call in response.tool_calls]
        calls = [call for call, _ in planned]
        await steps.plan_calls(tx, task.id, task.run, step, calls)
        rows = await steps.calls_of(tx, task.id, task.run, step)
        gated: list[Mapping[str, Any]] = []
        ready: list[int] = []
        for row, (call, problem) in zip(rows, planned, strict=True):
            if problem is not None:
                await steps.finish(tx, task.id, row, problem, "failed")
            elif call.gated:
                gated.append(_item(row, tools[model_name(call.server, call.name)], None))
            else:
                ready.append(row.call)
        if gated:
            return await self.wait_at_gate(tx, task, "tool", gated)
        return NextStep("act", step, ready) if ready else NextStep("think", step + 1)

    def _plan(
        self, agent: AgentVersion, call: Any, tools: Mapping[str, Tool]
    ) -> tuple[PlannedCall, str | None]:
        """The call as it will be made, and what is wrong with it, if anything is."""
        tool = tools.get(call.tool_name)
        arguments: dict[str, Any] = {}
        problem: str | None
        try:
            arguments = storable(call.args_as_dict(raise_if_invalid=True))
        except (ValueError, AssertionError):
            problem = "The arguments are not a JSON object. Call it again, rightly."
        else:
            problem = problem_with(tool, arguments) if tool else None
        if tool is None:
            problem = f"There is no tool of that name. There are: {', '.join(sorted(tools))}."
        gated = tool is not None and problem is None and _asks(agent, tool)
        planned = PlannedCall(
            name=tool.name if tool else call.tool_name,
            server=tool.server if tool else None,
            call_id=call.tool_call_id,
            read_only=tool.read_only if tool else True,
            arguments=arguments,
            definition_hash=tool.definition_hash if tool else "",
            gated=gated,
        )
        return planned, problem

    async def _answer(
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
                "reason": "The agent's policy asks a person before its output counts.",
            }
            return await self.wait_at_gate(tx, task, "output", [item])
        after = replace(task, output=output)
        await transitions.apply(tx, task, after, "COMPLETED", Trigger.RUN)
        return NextStep("end")

    async def wait_at_gate(
        self,
        tx: AccountTransaction,
        task: Task,
        gate: Gate,
        items: list[Mapping[str, Any]],
    ) -> NextStep:
        await transitions.apply(tx, task, task, "WAITING_APPROVAL", Trigger.RUN)
        await transitions.open_gate(tx, task, gate, self._gate_time, items)
        return NextStep("wait")

    async def regate(
        self,
        tx: AccountTransaction,
        task: Task,
        row: Step,
        tool: Tool | None,
        reason: str,
    ) -> NextStep:
        """Sends a call back to a person: what was decided about it no longer fits."""
        definition = (tool.definition_hash, tool.read_only) if tool else None
        await steps.set_state(tx, task.id, row, "gated", definition=definition)
        item = _item(row, tool, reason)
        return await self.wait_at_gate(tx, task, "tool", [item])


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


def _item(row: Step, tool: Tool | None, reason: str | None) -> dict[str, Any]:
    asks = tool is ASK_PERSON
    return {
        **_EMPTY_ITEM,
        "id": row.item_id,
        "tool": row.name,
        "server": row.server,
        "arguments": row.arguments,
        "argumentsSchema": ANSWER_SCHEMA if asks else (tool.arguments_schema if tool else None),
        "reason": reason
        or ("The agent asks a question." if asks else "The agent's policy asks a person first."),
        "definitionHash": tool.definition_hash if tool else row.definition_hash,
    }


def _asks(agent: AgentVersion, tool: Tool) -> bool:
    if tool is ASK_PERSON:
        return True
    return agent.approval.asks_before(tool.full_name, read_only=tool.read_only)


def problem_with(tool: Tool, arguments: Any) -> str | None:
    """What is wrong with the arguments, in words that the model can act on."""
    found = problems(tool.arguments_schema, arguments)
    return f"The arguments do not fit the tool: {'; '.join(found[:5])}" if found else None


def _declined(what: str, review: Review) -> str:
    reason = f" Reason: {review.reason}" if review.reason else ""
    return f"The person in charge did not accept this {what}.{reason}"


def _unsure(review: Review) -> str:
    reason = f" Reason: {review.reason}" if review.reason else ""
    return (
        "This call was begun and may have taken effect; its outcome is not known. The person "
        f"in charge decided not to make it again.{reason}"
    )
