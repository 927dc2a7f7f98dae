"""Plans the tool calls that an answer requests, and checks their arguments.

Nothing is stored here: a check can take seconds, and must not hold the lock of the account.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic_ai.messages import ModelResponse, ToolCallPart

from rota.agents.model import AgentVersion
from rota.platform.schema import SchemaChecks, Verdict
from rota.runs import transcript
from rota.runs.agent_loop import needs_approval
from rota.runs.tool_steps import PlannedCall
from rota.runs.tools import READ_RESULT, Tool

# The tool calls of one answer that are made. Temporal runs at most 2,000 calls of a run at a time.
# A request with thousands of results would also keep a worker busy for seconds.
MAX_CALLS = 64


async def plan_calls(
    checks: SchemaChecks,
    account_id: UUID,
    agent: AgentVersion,
    response: ModelResponse,
    tools: Mapping[str, Tool],
) -> list[PlannedCall]:
    """The calls to make, at most MAX_CALLS, each with what is wrong with it, if anything."""
    planned: list[PlannedCall] = []
    # Of tools whose schema cannot be used. The next call of such a tool is not checked again.
    unusable: dict[str, Verdict] = {}
    for call in response.tool_calls[:MAX_CALLS]:
        tool = tools.get(call.tool_name)
        arguments, problem = transcript.arguments_of(call)
        if tool is None:
            # Only a long run is told about the tool that reads results again.
            known = ", ".join(sorted(tools.keys() - {READ_RESULT.model_name}))
            problem = f"Tool not found. Available tools: {known}."
        elif problem is None:
            verdict = unusable.get(call.tool_name)
            if verdict is None:
                verdict = await checks.check(account_id, tool.arguments_schema, arguments)
            if not verdict.usable:
                unusable[call.tool_name] = verdict
            problem = transcript.problem_with(verdict)
        planned.append(_planned(agent, call, tool, arguments, problem))
    if response.finish_reason == "length" and len(planned) == len(response.tool_calls) > 0:
        # The arguments of the last call may be incomplete, even if they are valid.
        planned[-1] = replace(planned[-1], problem=transcript.CUT_OFF_CALL, gated=False)
    return planned


def _planned(
    agent: AgentVersion,
    call: ToolCallPart,
    tool: Tool | None,
    arguments: dict[str, Any],
    problem: str | None,
) -> PlannedCall:
    return PlannedCall(
        name=tool.name if tool else call.tool_name,
        server=tool.server if tool else None,
        call_id=call.tool_call_id,
        read_only=tool.read_only if tool else True,
        arguments=arguments,
        sealed=tool.seal(arguments) if tool else None,
        gated=tool is not None and problem is None and needs_approval(agent, tool),
        problem=problem,
    )
