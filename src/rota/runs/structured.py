"""Structured output: how a request asks for it, and whether an answer matches the schema."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import structlog
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from rota.platform import json
from rota.platform.canonical import canonical_json, digest
from rota.platform.schema import SchemaChecks
from rota.runs import answers
from rota.runs.answers import UnusableAnswer
from rota.runs.model_errors import GiveUp, ModelRefusedRequest, classify_error
from rota.runs.models import PricedModel
from rota.runs.steps import Step
from rota.tasks.schemas import MAX_TEXT

log = structlog.get_logger()

# How often the model can correct an answer in one run.
MAX_REPAIRS = 3
# A model reads at most this many problems of its answer.
MAX_TOLD = 10
# Schemas that providers have refused. They are few, and a forgotten one is refused again.
MAX_REFUSED = 1_000

_FENCE = "```"


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


class SchemaRefused(Exception):
    """The provider may have refused the schema of the output. The next request is without it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A final answer: the output that it becomes, and why it cannot, if it cannot."""

    output: str
    problem: UnusableAnswer | None = None
    # The output as data, if the task has a schema.
    data: Any = None


async def answer_of(
    checks: SchemaChecks, account_id: UUID, schema: dict[str, Any] | None, response: ModelResponse
) -> Answer:
    """The final answer in a response without tool calls. Never inside a transaction."""
    text, problem = response.text or "", answers.problem_with(response)
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
        return Answer(output, answers.TooLong(len(output)))
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


class OutputFormats:
    """Requests with the schema of the output, for providers that enforce it."""

    def __init__(self) -> None:
        self._refused: set[tuple[str, str | None, str, str]] = set()

    def parameters(
        self, chosen: PricedModel, tools: list[ToolDefinition], schema: dict[str, Any] | None
    ) -> ModelRequestParameters:
        if schema is None or not self._is_native(chosen, schema):
            return ModelRequestParameters(function_tools=tools)
        return replace(_with_schema(schema), function_tools=tools)

    def _is_native(self, chosen: PricedModel, schema: dict[str, Any]) -> bool:
        if not _enforces_schemas(chosen.model) or _key(chosen, schema) in self._refused:
            return False
        # Resolving references can multiply a schema. The check afterwards needs no copy.
        text = json.dumps(schema)
        if b'"$ref"' in text or b'"$dynamicRef"' in text:
            return False
        try:
            chosen.model.prepare_request(chosen.settings, _with_schema(schema))
        except Exception as error:
            # The client library cannot translate every schema for its provider.
            log.info("output_schema_not_sent", model=chosen.name, error=type(error).__name__)
            return False
        return True

    def is_refused(
        self,
        chosen: PricedModel,
        parameters: ModelRequestParameters,
        schema: dict[str, Any] | None,
        error: Exception,
    ) -> bool:
        """Whether a provider may have refused the schema. The next request is without it.

        Providers accept only parts of JSON Schema, and each a different one.
        """
        if schema is None or parameters.output_mode != "native":
            return False
        if not isinstance(classify_error(error), ModelRefusedRequest):
            return False
        if len(self._refused) >= MAX_REFUSED:
            self._refused.clear()
        self._refused.add(_key(chosen, schema))
        return True


def _with_schema(schema: dict[str, Any]) -> ModelRequestParameters:
    return ModelRequestParameters(
        output_mode="native",
        output_object=OutputObjectDefinition(json_schema=schema, name="output"),
    )


def _key(chosen: PricedModel, schema: dict[str, Any]) -> tuple[str, str | None, str, str]:
    """Two providers can have a model of the same name."""
    model = chosen.model
    return model.system, model.base_url, chosen.name, digest(canonical_json(schema))


def _enforces_schemas(model: Model) -> bool:
    """Whether the provider enforces a schema even in a request with tools, as all of ours are."""
    profile = model.profile
    if not profile.get("supports_json_schema_output", False):
        return False
    return "google" not in model.system or bool(
        profile.get("google_supports_tool_combination", False)
    )
