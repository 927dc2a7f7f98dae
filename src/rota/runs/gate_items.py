"""The items of the reviews that a run opens: its calls, and its output."""

from typing import Any

import structlog

from rota.agents import templates
from rota.agents.model import AgentVersion
from rota.platform.canonical import digest
from rota.platform.db import AccountTransaction
from rota.runs import steps, transcript
from rota.runs.answers import Answer
from rota.runs.steps import Step
from rota.runs.tools import ANSWER_SCHEMA, ASK_PERSON, Tool
from rota.tasks import seals
from rota.tasks.model import ReviewItem, Task
from rota.tasks.schemas import MAX_TEXT

log = structlog.get_logger()

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"output": {"type": "string", "maxLength": MAX_TEXT}},
    "required": ["output"],
    "additionalProperties": False,
}


async def words_beside(tx: AccountTransaction, task: Task, row: Step) -> str | None:
    """What the model wrote beside an earlier call. None also if its answer was not stored."""
    model_call = await steps.one(tx, task.id, row.run, row.step, 0)
    if model_call is None or model_call.result is None:
        return None
    return transcript.words_beside_calls(transcript.response_of(model_call))


def _template(agent: AgentVersion, tool: Tool) -> str | None:
    template = agent.describe.get(tool.full_name) if tool.server else tool.describe
    known = tool.arguments_schema.get("properties")
    if template is not None and isinstance(known, dict):
        unknown = [name for name in templates.arguments_of(template) if name not in known]
        if unknown:
            log.warning(
                "describe_argument_unknown",
                agent=agent.name,
                version=agent.version,
                tool=tool.full_name,
                arguments=unknown,
            )
    return template


def _policy_reason(agent: AgentVersion, tool: Tool) -> str:
    if agent.approval.asks_before(tool.full_name, read_only=tool.read_only):
        return "The agent's policy requires approval of this call."
    return (
        "Approval is required because this task is a fork, belongs to one, or inherits the policy "
        "of a task above it."
    )


def of_call(
    agent: AgentVersion, row: Step, tool: Tool, words: str | None, reason: str | None
) -> ReviewItem:
    """The item of a tool call that waits for approval."""
    assert row.sealed is not None
    asks = tool is ASK_PERSON
    return {
        "id": row.item_id,
        "tool": row.name,
        "server": row.server,
        "serverId": tool.server_revision[0] if tool.server_revision else None,
        "serverRevision": tool.server_revision[1] if tool.server_revision else None,
        "serverUrl": tool.server_url,
        "toolDescription": tool.description,
        "toolTitle": tool.title,
        "annotations": tool.annotations,
        "definitionHash": tool.server_definition_hash,
        "describe": _template(agent, tool),
        "agentVersion": agent.version,
        "agentSays": words,
        "arguments": row.sealed_arguments,
        "argumentsSchema": ANSWER_SCHEMA if asks else tool.arguments_schema,
        "reason": reason or ("The agent asks a question." if asks else _policy_reason(agent, tool)),
        "sealed": row.sealed,
        "digest": digest(row.sealed),
        "decision": None,
        "decidedBy": None,
        "decidedAt": None,
    }


def of_output(task: Task, step: int, answer: Answer) -> ReviewItem:
    """The item of an output that waits for approval."""
    has_schema = task.output_schema is not None
    arguments = answer.data if has_schema else {"output": answer.output}
    sealed = seals.output(arguments)
    return {
        "id": f"output-{task.run}-{step}",
        "tool": None,
        "server": None,
        "serverId": None,
        "arguments": arguments,
        "argumentsSchema": task.output_schema if has_schema else OUTPUT_SCHEMA,
        "reason": "The agent's policy requires approval of its output.",
        "sealed": sealed,
        "digest": digest(sealed),
        "decision": None,
        "decidedBy": None,
        "decidedAt": None,
    }
