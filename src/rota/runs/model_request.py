"""The request of one model call: the conversation, or for a long run first a summary of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from opentelemetry.trace import SpanKind
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from rota.agents.model import AgentVersion
from rota.platform import clock, json, tracing
from rota.runs import charging, compaction, summaries, transcript
from rota.runs.compaction import ContextWindow
from rota.runs.model_errors import ContextTooLong, classify_error
from rota.runs.models import (
    MAX_CALL_S,
    MIN_OUTPUT_TOKENS,
    MIN_SUMMARY_TOKENS,
    OnText,
    PricedModel,
    ask,
)
from rota.runs.output_formats import OutputFormats, SchemaRefused
from rota.runs.prices import CHARACTERS_PER_TOKEN, TokenUsage
from rota.runs.steps import ModelCallKind, Step
from rota.runs.tools import READ_RESULT, Tool
from rota.tasks.model import Task

# When the provider refuses a request as too long, the estimated bytes per token are multiplied by
# this factor. The call fails after this many refusals.
TOO_LONG_FACTOR = 0.75
MAX_TOO_LONG = 3


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the next request of a run is made from."""

    agent: AgentVersion
    task: Task
    # The calls so far, and the number of the step that comes next.
    rows: Sequence[Step]
    step: int
    tools: Mapping[str, Tool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallRequest:
    kind: ModelCallKind
    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings
    # What the price of the input is estimated from.
    input_characters: int
    # The longest answer that the window has room for.
    max_tokens: int
    # How many bytes the conversation has, how many of them are estimated to be a token, and how
    # many the earlier calls of the run have shown.
    size: int
    per_token: float
    known_per_token: float
    output_schema: dict[str, Any] | None = None
    # For a summary: the last step that it replaces.
    through_step: int | None = None

    @property
    def tools(self) -> list[ToolDefinition]:
        return self.parameters.function_tools

    @property
    def least_tokens(self) -> int:
        """The shortest answer that is worth the call. Half a summary is worth nothing."""
        least = MIN_SUMMARY_TOKENS if self.kind == "summary" else MIN_OUTPUT_TOKENS
        return min(least, self.max_tokens)

    def is_shorter_than(self, other: "ModelCallRequest") -> bool:
        return self.size < other.size or self.max_tokens < other.max_tokens

    def facts(self, window: ContextWindow, usage: TokenUsage) -> dict[str, Any]:
        """What the step stores about the request. Copies of the step keep it."""
        found: dict[str, Any] = {}
        if self.through_step is not None:
            found["throughStep"] = self.through_step
        counted = None
        if not usage.estimated:
            counted = compaction.counted(self.size, usage.input_tokens, window)
        per_token = min(self.per_token, counted or self.per_token)
        if per_token < self.known_per_token:
            found["bytesPerToken"] = per_token
        return found


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """What a model answered, and what that cost."""

    response: ModelResponse
    usage: TokenUsage
    cost_micros: int
    started_at: datetime


def build(
    chosen: PricedModel,
    formats: OutputFormats,
    conversation: Conversation,
    max_per_token: float = CHARACTERS_PER_TOKEN,
) -> ModelCallRequest:
    """The request of the next model call.

    `max_per_token` is lower after the provider has refused the request as too long.
    """
    agent, task, rows = conversation.agent, conversation.task, conversation.rows
    definitions = {
        name: ToolDefinition(
            name=name, description=tool.description, parameters_json_schema=tool.arguments_schema
        )
        for name, tool in conversation.tools.items()
    }
    schema = task.output_schema
    # Some providers add the schema to the conversation once more.
    extra = sum(map(_size, definitions.values()))
    extra += len(json.dumps(schema)) if schema is not None else 0
    work = compaction.size_of(agent.instructions) + compaction.size_of(transcript.work_of(task))
    known = compaction.bytes_per_token(rows, chosen.name)
    per_token = min(known, compaction.rounded(max_per_token))
    view = compaction.view(rows, conversation.step, work + extra, chosen.window, per_token)
    size = view.size
    kind: ModelCallKind = "model"
    if view.summarize_through is not None:
        kind, extra, schema = "summary", 0, None
        messages, size = summaries.request(agent, task, rows, view, chosen.window)
        parameters = ModelRequestParameters()
    else:
        if not view.is_long and (unused := definitions.pop(READ_RESULT.model_name, None)):
            extra -= _size(unused)
            size -= _size(unused)
        parameters = formats.parameters(chosen, list(definitions.values()), schema)
        messages = transcript.messages(agent, task, rows, view)
    input_characters = len(ModelMessagesTypeAdapter.dump_json(messages)) + extra
    window = chosen.window
    # Some providers refuse a request whose longest answer would pass the window.
    free = window.tokens - int(input_characters / per_token)
    return ModelCallRequest(
        kind=kind,
        messages=messages,
        parameters=parameters,
        # Nothing reads the request for a summary again.
        settings=chosen.settings | chosen.caching if kind == "model" else chosen.settings,
        input_characters=input_characters,
        max_tokens=min(chosen.settings["max_tokens"], max(window.answer_tokens, free)),
        size=size,
        per_token=per_token,
        known_per_token=known,
        output_schema=schema,
        through_step=view.summarize_through,
    )


class Requests:
    """The requests of one model call. After the provider has refused one as too long, the next one
    is shorter."""

    def __init__(self, formats: OutputFormats, conversation: Conversation) -> None:
        self._formats = formats
        self._conversation = conversation
        self._max_per_token = float(CHARACTERS_PER_TOKEN)
        self._refused: ModelCallRequest | None = None
        self._refusals = 0

    def next(self, chosen: PricedModel) -> ModelCallRequest:
        """The request for this model. Raises ContextTooLong if none is short enough."""
        while True:
            request = build(chosen, self._formats, self._conversation, self._max_per_token)
            if self._refused is None or request.is_shorter_than(self._refused):
                return request
            if request.per_token <= 1:
                raise ContextTooLong
            self._max_per_token = request.per_token * TOO_LONG_FACTOR

    def can_shorten(self, refused: ModelCallRequest) -> bool:
        """Whether another request is worth a try after the provider has refused this one."""
        self._refusals += 1
        self._refused, self._max_per_token = refused, refused.per_token * TOO_LONG_FACTOR
        return self._refusals < MAX_TOO_LONG


async def send(
    chosen: PricedModel,
    formats: OutputFormats,
    request: ModelCallRequest,
    max_tokens: int,
    on_text: OnText,
    *,
    attempt: int = 1,
) -> MeasuredAnswer:
    """The answer to the request. Raises SchemaRefused, or what an error means for the run."""
    started_at = clock.now()
    settings = request.settings | ModelSettings(max_tokens=max_tokens, timeout=MAX_CALL_S)
    try:
        with tracing.span(f"model {chosen.name}", kind=SpanKind.CLIENT):
            response = await ask(chosen, request.messages, settings, request.parameters, on_text)
    except Exception as error:
        if formats.is_refused(chosen, request.parameters, request.output_schema, error):
            raise SchemaRefused from error
        raise classify_error(error, attempt) from error
    usage, cost_micros = await charging.measure(
        chosen.price,
        started_at,
        request.messages,
        request.tools,
        response,
        request.input_characters,
    )
    return MeasuredAnswer(response, usage, cost_micros, started_at)


def _size(tool: ToolDefinition) -> int:
    return compaction.size_of(tool.description or "") + len(json.dumps(tool.parameters_json_schema))
