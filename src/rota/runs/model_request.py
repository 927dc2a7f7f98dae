"""What a model is asked in one call: the conversation, or for a long run first a summary of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from rota.agents.model import AgentVersion
from rota.platform import json
from rota.runs import compaction, summaries, transcript
from rota.runs.models import PricedModel
from rota.runs.prices import CHARACTERS_PER_TOKEN
from rota.runs.steps import ModelCallKind, Step
from rota.runs.structured import OutputFormats
from rota.runs.tools import READ_RESULT, Tool
from rota.tasks.model import Task


@dataclass(frozen=True, slots=True)
class ModelCallRequest:
    kind: ModelCallKind
    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings
    # What the price of the input is estimated from.
    input_characters: int
    # The longest answer that the window has room for.
    max_tokens: int
    output_schema: dict[str, Any] | None = None
    # For a summary: the last step that it replaces.
    through_step: int | None = None

    @property
    def tools(self) -> list[ToolDefinition]:
        return self.parameters.function_tools


def build(
    chosen: PricedModel,
    formats: OutputFormats,
    agent: AgentVersion,
    task: Task,
    rows: Sequence[Step],
    step: int,
    tools: Mapping[str, Tool],
) -> ModelCallRequest:
    """The request of this step's model call."""
    definitions = {
        name: ToolDefinition(
            name=name, description=tool.description, parameters_json_schema=tool.arguments_schema
        )
        for name, tool in tools.items()
    }
    schema = task.output_schema
    # Some providers add the schema to the conversation once more.
    extra = sum(map(_characters, definitions.values()))
    extra += len(json.dumps(schema)) if schema is not None else 0
    work = compaction.size_of(agent.instructions) + compaction.size_of(transcript.work_of(task))
    view = compaction.view(rows, step, work + extra, chosen.window)
    if view.summarize_through is not None:
        messages = summaries.request(agent, task, rows, view, chosen.window)
        return _request(chosen, "summary", messages, ModelRequestParameters(), 0, view=view)
    if not view.is_long and (unused := definitions.pop(READ_RESULT.model_name, None)):
        extra -= _characters(unused)
    parameters = formats.parameters(chosen, list(definitions.values()), schema)
    messages = transcript.messages(agent, task, rows, view)
    return _request(chosen, "model", messages, parameters, extra, schema=schema)


def _request(
    chosen: PricedModel,
    kind: ModelCallKind,
    messages: list[ModelMessage],
    parameters: ModelRequestParameters,
    extra_characters: int,
    *,
    schema: dict[str, Any] | None = None,
    view: compaction.View | None = None,
) -> ModelCallRequest:
    input_characters = len(ModelMessagesTypeAdapter.dump_json(messages)) + extra_characters
    window = chosen.window
    # Some providers refuse a request whose longest answer would pass the window.
    free = window.tokens - input_characters // CHARACTERS_PER_TOKEN
    return ModelCallRequest(
        kind,
        messages,
        parameters,
        # Nothing reads the request for a summary again.
        chosen.settings | chosen.caching if kind == "model" else chosen.settings,
        input_characters,
        min(chosen.settings["max_tokens"], max(window.answer_tokens, free)),
        schema,
        view.summarize_through if view else None,
    )


def _characters(tool: ToolDefinition) -> int:
    return len(tool.description or "") + len(json.dumps(tool.parameters_json_schema))
