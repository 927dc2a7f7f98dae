"""Runs past tasks against another version of their agent, with recorded tool results.

Nothing is written, and no tool is called: a call with the name and the arguments of a recorded one
gets its result, and any other is answered with a note. Only the model is asked. The provider bills
these calls, and no account is charged.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from pydantic_ai.messages import ModelResponse

from rota.agents.model import AgentVersion
from rota.credits.money import of_cents
from rota.platform import clock
from rota.platform.canonical import canonical_json
from rota.platform.errors import RateLimited, Unavailable
from rota.platform.schema import SchemaChecks
from rota.runs import answers, model_request, stored_answers, stored_results, transcript
from rota.runs.bounds import Bounds
from rota.runs.model_errors import ContentFiltered, ContextTooLong, GiveUp, TryAgain
from rota.runs.model_request import Conversation, MeasuredAnswer, ModelCallRequest, Requests
from rota.runs.models import Models, PricedModel, max_answer_tokens
from rota.runs.output_formats import OutputFormats, SchemaRefused
from rota.runs.steps import Step
from rota.runs.tool_steps import PlannedCall
from rota.runs.tools import READ_RESULT, Tool, model_name
from rota.tasks.creation import run_budget_cents
from rota.tasks.model import Task

# The name that the model sees, and the arguments as canonical JSON.
Call = tuple[str, str]

NOT_RECORDED = (
    "This is a replay of an earlier task. This call was not recorded, so it has no result. "
    "Continue without it."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a task ended with one version."""

    version: int
    output: str | None
    # Why the run has no output. None if it has one.
    error: str | None
    model_calls: int
    # The names of the tools, in order.
    tool_calls: list[str]
    cost_micros: int
    # Calls without a recorded result.
    not_recorded: int = 0


class RecordedCalls:
    """The finished tool calls of a run.

    A person may have edited the arguments of a call. It is then found by both.
    """

    def __init__(self, original: Sequence[Step]) -> None:
        requested = {
            (row.step, number): call
            for row in original
            if row.kind == "model" and row.is_answered and row.result
            for number, call in enumerate(transcript.response_of(row).tool_calls, 1)
        }
        self._left: dict[Call, list[Step]] = {}
        # The latest call of each tool, by the name that the model sees.
        self.of_tool: dict[str, Step] = {}
        for row in original:
            if row.kind != "tool" or row.state != "finished":
                continue
            name = model_name(row.server, row.name)
            self.of_tool[name] = row
            known = {canonical_json(row.sealed_arguments)}
            call = requested.get((row.step, row.call))
            if call is not None:
                arguments, problem = transcript.arguments_of(call)
                if problem is None:
                    known.add(canonical_json(arguments))
            for arguments_json in known:
                self._left.setdefault((name, arguments_json), []).append(row)

    def next(self, name: str, arguments: dict[str, Any]) -> Step | None:
        """The next one of these calls, or else the last one again. None if there is none."""
        left = self._left.get((name, canonical_json(arguments)), [])
        if len(left) > 1:
            return left.pop(0)
        return left[0] if left else None


@dataclass(slots=True)
class _Replay:
    recorded: RecordedCalls
    rows: list[Step] = field(default_factory=list)
    cost_micros: int = 0
    not_recorded: int = 0

    def ended(self, agent: AgentVersion, output: str | None, error: str | None) -> Outcome:
        return replace(
            outcome_of(agent.version, output, error, self.rows),
            cost_micros=self.cost_micros,
            not_recorded=self.not_recorded,
        )


def outcome_of(
    version: int, output: str | None, error: str | None, rows: Sequence[Step]
) -> Outcome:
    """The outcome of a run with these calls."""
    return Outcome(
        version=version,
        output=output,
        error=error,
        model_calls=sum(row.is_answered for row in rows),
        tool_calls=[
            f"{row.server}/{row.name}" if row.server else row.name
            for row in rows
            if row.kind == "tool"
        ],
        cost_micros=sum(row.cost_micros for row in rows),
    )


class Replays:
    def __init__(self, models: Models, checks: SchemaChecks, bounds: Bounds) -> None:
        self._models = models
        self._bounds = bounds
        self._checks = checks
        self._formats = OutputFormats()

    async def replay(
        self,
        account_id: UUID,
        task: Task,
        agent: AgentVersion,
        tools: Mapping[str, Tool],
        original: Sequence[Step],
    ) -> Outcome:
        """Runs the task with this version. It stops at the limits that a run has."""
        if not task.own_output_schema:
            task = replace(task, output_schema=agent.output_schema)
        done = _Replay(RecordedCalls(original))
        try:
            output = None
            for step in itertools.count(1):
                self._bounds.check(done.rows, agent.max_steps, out_of_time=False)
                response, row = await self._ask(task, agent, tools, done, step)
                done.rows.append(row)
                if response.finish_reason == "content_filter":
                    raise ContentFiltered
                if row.kind == "summary":
                    _check_summary(done, response)
                elif response.tool_calls:
                    planned = await stored_answers.plan_calls(
                        self._checks, account_id, agent, response, tools
                    )
                    _answer_calls(done, response, planned)
                else:
                    output = await self._output(account_id, task, done, response)
                    if output is not None:
                        break
            return done.ended(agent, output, None)
        except GiveUp as error:
            return done.ended(agent, None, f"{error.code}: {error.message}")
        except TryAgain as error:
            return done.ended(agent, None, f"MODEL_UNAVAILABLE: {error}")
        except (RateLimited, Unavailable) as error:
            return done.ended(agent, None, f"{error.code}: {error.message}")

    async def _output(
        self, account_id: UUID, task: Task, done: _Replay, response: ModelResponse
    ) -> str | None:
        """The output. None if the model has to answer again."""
        answer = await answers.answer_of(self._checks, account_id, task.output_schema, response)
        if answer.problem is None:
            return answer.output
        if answers.ends_run(done.rows[:-1], task.output_schema):
            raise answer.problem
        done.rows[-1] = replace(done.rows[-1], note=answer.problem.note, outcome="failed")
        return None

    async def _ask(
        self,
        task: Task,
        agent: AgentVersion,
        tools: Mapping[str, Tool],
        done: _Replay,
        step: int,
    ) -> tuple[ModelResponse, Step]:
        """Asks each model of the agent's chain until one answers."""
        chain = self._models.chain(agent.model)
        requests = Requests(self._formats, Conversation(agent, task, done.rows, step, tools))
        failed = 0
        while True:
            chosen = chain.choose()
            request = requests.next(chosen)
            try:
                answer = await self._request(task, agent, chosen, request, done)
            except SchemaRefused:
                continue
            except ContextTooLong:
                if not requests.can_shorten(request):
                    raise
                continue
            except TryAgain as error:
                chain.failed(chosen, error.after)
                failed += 1
                if failed == len(chain):
                    raise
                continue
            row = replace(
                _row(step, chosen.name, transcript.dump_response(answer.response)),
                kind=request.kind,
                arguments=request.facts(chosen.window, answer.usage),
                input_tokens=answer.usage.input_tokens,
                output_tokens=answer.usage.output_tokens,
                cache_read_tokens=answer.usage.cache_read_tokens,
            )
            return answer.response, row

    async def _request(
        self,
        task: Task,
        agent: AgentVersion,
        chosen: PricedModel,
        request: ModelCallRequest,
        done: _Replay,
    ) -> MeasuredAnswer:
        budget_micros = of_cents(run_budget_cents(agent, task.budget_limit_cents))
        max_tokens = max_answer_tokens(
            chosen.price,
            budget_micros - done.cost_micros,
            request.input_characters,
            request.max_tokens,
            clock.now(),
        )
        answer = await model_request.send(
            chosen, self._formats, request, max_tokens, lambda text: None
        )
        done.cost_micros += answer.cost_micros
        return answer


def _check_summary(done: _Replay, response: ModelResponse) -> None:
    """Raises for the second unusable summary in a row."""
    problem = answers.problem_with_summary(response)
    if problem is None:
        return
    if len(done.rows) > 1 and answers.is_refused_summary(done.rows[-2]):
        raise problem
    done.rows[-1] = replace(done.rows[-1], outcome="failed")


def _answer_calls(done: _Replay, response: ModelResponse, planned: Sequence[PlannedCall]) -> None:
    model_call, requested = done.rows[-1], len(response.tool_calls)
    if requested > len(planned):
        note = transcript.too_many_calls(requested, len(planned))
        done.rows[-1] = replace(model_call, note=note)
    for number, call in enumerate(planned, 1):
        _answer(done, model_call.step, number, call)


def _answer(done: _Replay, step: int, number: int, call: PlannedCall) -> None:
    """Answers a call like the recorded one."""
    name = model_name(call.server, call.name)
    # A tool of the recorded run may not be connected anymore.
    same_tool = done.recorded.of_tool.get(name)
    if name == READ_RESULT.model_name and call.problem is None:
        result, _ = stored_results.reading(done.rows, step, call.arguments)
    elif (known := done.recorded.next(name, call.arguments)) is not None:
        result = known.result
    elif call.problem is not None and same_tool is None:
        result = call.problem
    else:
        done.not_recorded += 1
        result = NOT_RECORDED
    row = replace(
        _row(step, same_tool.name if same_tool else call.name, result),
        call=number,
        kind="tool",
        server=same_tool.server if same_tool else call.server,
        call_id=call.call_id,
        arguments=call.arguments,
    )
    done.rows.append(row)


def _row(step: int, name: str, result: Any) -> Step:
    """A finished call that is never stored."""
    now = clock.now()
    return Step(
        run=1,
        step=step,
        call=0,
        kind="model",
        state="finished",
        name=name,
        server=None,
        call_id=None,
        read_only=True,
        arguments=None,
        sealed=None,
        approved_digest=None,
        maybe_made=False,
        planned_run=None,
        result=result,
        outcome="ok",
        note=None,
        child_task_id=None,
        input_tokens=0,
        output_tokens=0,
        cache_read_tokens=0,
        cache_write_tokens=0,
        reasoning_tokens=0,
        estimated=False,
        cost_micros=0,
        price_version=None,
        copied=False,
        planned_at=now,
        started_at=now,
        finished_at=now,
    )
