"""Applies the stored and charged answer of a model call to its run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog
from pydantic_ai.messages import ModelResponse, ToolCallPart

from rota.agents.model import AgentVersion
from rota.platform.db import DATABASE_ERRORS, REJECTED_VALUES, AccountTransaction
from rota.platform.errors import RateLimited, Unavailable
from rota.platform.schema import SchemaChecks, Verdict
from rota.runs import answers, step_events, steps, transcript
from rota.runs.agent_loop import AgentLoop, ResponsePlan, Start
from rota.runs.bounds import is_past_deadline
from rota.runs.call_protection import retry_database
from rota.runs.contracts import CallInput, NextStep
from rota.runs.model_errors import ContentFiltered, GiveUp, ModelAnswerUnusable
from rota.runs.run_context import FencedOut, RunContext, ids_of
from rota.runs.steps import ModelCallKind, Step
from rota.runs.tool_steps import PlannedCall
from rota.runs.tools import READ_RESULT, AccountBusy, Tool, ToolUnavailable, needs_approval
from rota.tasks.model import Task

log = structlog.get_logger()

Tools = dict[str, Tool]

# The tool calls of one answer that are made. Temporal runs at most 2,000 calls of a run at a time.
# A request with thousands of results would also keep a worker busy for seconds.
MAX_CALLS = 64


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored and charged answer."""

    kind: ModelCallKind
    answer: Any


class StoredAnswers:
    def __init__(self, context: RunContext, checks: SchemaChecks, loop: AgentLoop) -> None:
        self._context = context
        self._checks = checks
        self._loop = loop

    async def apply(
        self,
        call_input: CallInput,
        agent: AgentVersion,
        output_schema: dict[str, Any] | None,
        tools: Tools,
        stored: "Stored | None",
        start_calls: Start | None,
    ) -> NextStep:
        """Applies the answer. If that fails, the run fails: the same answer fails again.

        `stored` is what this slice has just stored. If it is None, the answer is read.
        """
        try:
            plan = await self._plan(call_input, agent, output_schema, tools, stored)
            try:
                return await self._apply(call_input, agent, tools, plan, start_calls)
            except Exception as error:
                if start_calls is None or not _is_caused_by_answer(error):
                    raise
                # The error may come from starting the calls, not from the answer. The answer is
                # applied again without starting any, and the slice forgets those that it started.
                start = partial(_start_none, start_calls)
                return await self._apply(call_input, agent, tools, plan, start)
        except Exception as error:
            if not _is_caused_by_answer(error):
                raise
            # Without the message, which can quote the answer.
            log.error("model_answer_unusable", error=type(error).__name__)
            raise ModelAnswerUnusable from error

    async def _plan(
        self,
        call_input: CallInput,
        agent: AgentVersion,
        output_schema: dict[str, Any] | None,
        tools: Tools,
        stored: "Stored | None",
    ) -> ResponsePlan:
        """Checks the answer before the account is locked.

        A stored answer does not change, and neither does the schema during a run.
        """
        account_id, task_id = ids_of(call_input.run)

        async def read() -> Stored:
            async with self._context.db.read(account_id) as tx:
                row = await steps.one(tx, task_id, call_input.run.run, call_input.step, 0)
            assert row is not None
            return Stored("summary" if row.kind == "summary" else "model", row.result)

        found = stored if stored is not None else await retry_database(read)
        response = transcript.parsed(found.answer)
        if found.kind == "summary":
            return ResponsePlan(response, [], None, is_summary=True)
        try:
            planned = await plan_calls(self._checks, account_id, agent, response, tools)
            final = (
                await answers.answer_of(self._checks, account_id, output_schema, response)
                if not response.tool_calls
                else None
            )
        except RateLimited as error:
            raise AccountBusy(error) from None
        except Unavailable as error:
            log.warning("values_not_checked", error=error.message)
            raise ToolUnavailable(error.message) from None
        return ResponsePlan(response, planned, final)

    async def _apply(
        self,
        call_input: CallInput,
        agent: AgentVersion,
        tools: Tools,
        plan: ResponsePlan,
        start_calls: Start | None,
    ) -> NextStep:
        async def apply() -> NextStep:
            async with self._context.locked(call_input.run) as (tx, task):
                if task is None:
                    return NextStep("end")
                if task.status != "RUNNING" or is_past_deadline(task):
                    return await self._loop.advance(tx, task)
                if plan.response.finish_reason == "content_filter":
                    # The step is not finished, so a retry from failure asks the model again.
                    error = ContentFiltered()
                    return await self._loop.fail(
                        tx, task, error.code, error.message, retryable=error.retryable
                    )
                if not await steps.finish_model_call(tx, task.id, task.run, call_input.step):
                    # It is applied: an earlier attempt committed, although its connection was lost.
                    return await self._loop.advance(tx, task)
                next_step = await self._loop.apply_response(
                    tx, task, agent, call_input.step, plan, tools, start_calls
                )
                if next_step.kind == "think":
                    number = next_step.step
                    await step_events.model_call_starts(tx, task.run_id, number, is_new=True)
                return next_step

        return await retry_database(apply)


async def plan_calls(
    checks: SchemaChecks,
    account_id: UUID,
    agent: AgentVersion,
    response: ModelResponse,
    tools: Mapping[str, Tool],
) -> list[PlannedCall]:
    """The calls to make, at most MAX_CALLS, each with what is wrong with it, if anything.

    It stores nothing: a check can take seconds, and must not hold the lock of the account.
    """
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


async def _start_none(
    start: Start, tx: AccountTransaction, task: Task, agent: AgentVersion, _: list[Step]
) -> None:
    await start(tx, task, agent, [])


def _is_caused_by_answer(error: Exception) -> bool:
    if isinstance(error, FencedOut | ToolUnavailable | GiveUp):
        return False
    return isinstance(error, REJECTED_VALUES) or not isinstance(error, DATABASE_ERRORS)
