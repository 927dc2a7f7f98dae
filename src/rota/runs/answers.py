"""What a final answer becomes: the task's output, or a reason to ask the model again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic_ai.messages import ModelResponse

from rota.platform import json
from rota.platform.canonical import canonical_json
from rota.platform.schema import SchemaChecks
from rota.runs.model_errors import GiveUp
from rota.runs.steps import Step
from rota.runs.transcript import is_empty
from rota.tasks.schemas import MAX_TEXT

# How often the model can correct an answer in one run.
MAX_REPAIRS = 3

# A model reads at most this many problems of its answer.
MAX_TOLD = 10

_FENCE = "```"


class UnusableAnswer(GiveUp):
    """Ends the run if the model answers again in an unusable way."""

    retryable = True
    # What the model is told before it answers again.
    note: str


class CutOff(UnusableAnswer):
    code = "OUTPUT_CUT_OFF"
    note = (
        "Your answer was cut off at the output limit and cannot be used. Answer again, completely "
        "and in fewer words."
    )

    def __init__(self) -> None:
        super().__init__(
            "The model's answer was cut off at the output limit, even after it was asked again. "
            "Ask for a shorter answer, or raise maxOutputTokens in ROTA_MODELS or the agent's "
            "budget, then retry the task."
        )


class Empty(UnusableAnswer):
    code = "EMPTY_ANSWER"
    note = "Your answer was empty. Write the answer, or call a tool."

    def __init__(self) -> None:
        super().__init__(
            "The model's answer was empty, even after it was asked again. Retry the task, or use "
            "another model."
        )


class TooLong(UnusableAnswer):
    code = "OUTPUT_TOO_LONG"
    note = (
        f"Your answer is too long and cannot be used. Answer again, completely, in at most "
        f"{MAX_TEXT} characters."
    )

    def __init__(self, length: int) -> None:
        super().__init__(
            f"The model's answer has {length} characters, after an answer that was also unusable. "
            f"The maximum is {MAX_TEXT}. Ask for a shorter answer, or divide the task."
        )
        self.length = length


class SchemaMismatch(UnusableAnswer):
    code = "OUTPUT_SCHEMA_MISMATCH"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The model's answer does not match the task's outputSchema, after {MAX_REPAIRS} "
            f"corrections: {problem}. Simplify the schema, describe its fields, or use another "
            "model, then retry the task."
        )
        self.note = (
            f"Your answer does not match the JSON Schema of the output: {problem}. Answer again "
            "with the whole corrected JSON object and nothing else."
        )


class SchemaUnusable(GiveUp):
    code = "OUTPUT_SCHEMA_UNUSABLE"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The answer cannot be checked against the outputSchema: {problem}. Simplify the "
            "schema of the agent, or create the task again with a simpler schema of its own."
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer: the output that it becomes, and why it cannot, if it cannot."""

    output: str
    problem: UnusableAnswer | None = None
    # The output as data, if the task has a schema.
    data: Any = None


def problem_with_summary(response: ModelResponse) -> UnusableAnswer | None:
    """Why a response cannot replace earlier steps, if it cannot."""
    if response.finish_reason == "length":
        return CutOff()
    return None if (response.text or "").strip() else Empty()


def problem_with(response: ModelResponse) -> UnusableAnswer | None:
    """Why a response without tool calls cannot be the task's output, if it cannot."""
    text = response.text or ""
    if response.finish_reason == "length":
        return CutOff()
    if is_empty(response):
        return Empty()
    return TooLong(len(text)) if len(text) > MAX_TEXT else None


async def answer_of(
    checks: SchemaChecks, account_id: UUID, schema: dict[str, Any] | None, response: ModelResponse
) -> Answer:
    """The final answer in a response without tool calls. Never inside a transaction."""
    text, problem = response.text or "", problem_with(response)
    if problem is not None or schema is None:
        return Answer(text, problem)
    try:
        data = json.loads(_without_fence(text.strip()).encode())
    except json.InvalidJson as error:
        return Answer(text, SchemaMismatch(f"it is not valid JSON: {error}"))
    verdict = await checks.check(account_id, schema, data, named="the schema")
    if not verdict.usable:
        raise SchemaUnusable(verdict.problems[0])
    if verdict.problems:
        return Answer(text, SchemaMismatch("; ".join(verdict.problems[:MAX_TOLD])))
    output = canonical_json(data)
    if len(output) > MAX_TEXT:
        return Answer(output, TooLong(len(output)))
    return Answer(output, data=data)


def ends_run(earlier: Sequence[Step], schema: dict[str, Any] | None) -> bool:
    """Whether an unusable answer after these calls ends the run.

    The second one in a row does. With a schema, the model can correct MAX_REPAIRS answers in a run.
    """
    calls = [row for row in earlier if row.kind != "summary"]
    if schema is not None:
        return sum(row.is_refused for row in calls) >= MAX_REPAIRS
    return bool(calls) and calls[-1].is_refused


def _without_fence(text: str) -> str:
    """The content of a Markdown code block, if the text is one."""
    if not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    language, _, content = text.removeprefix(_FENCE).removesuffix(_FENCE).partition("\n")
    return content.strip() if language.strip() in ("", "json") else text


def is_refused_summary(row: Step) -> bool:
    """Whether the call is an unusable summary. The second one in a row ends the run."""
    return row.kind == "summary" and row.is_refused
