"""Asks a model, and passes its text on while it is written."""

import asyncio
from collections.abc import Callable

from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from rota.runs.models import PricedModel

OnText = Callable[[str], None]

# How long a model call can take in total.
MAX_CALL_S = 600


async def ask(
    chosen: PricedModel,
    conversation: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    on_text: OnText,
) -> ModelResponse:
    """The whole answer. `on_text` gets each piece of its text when it arrives."""
    async with asyncio.timeout(MAX_CALL_S):
        return await _answer(chosen, conversation, settings, parameters, on_text)


async def _answer(
    chosen: PricedModel,
    conversation: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    on_text: OnText,
) -> ModelResponse:
    if not chosen.streams:
        return await chosen.model.request(conversation, settings, parameters)
    pieces = _Pieces()
    async with chosen.model.request_stream(conversation, settings, parameters) as stream:
        async for event in stream:
            if text := pieces.of(event):
                on_text(text)
    response = stream.get()
    # A reason that the library does not know is still a reason.
    if not (response.finish_reason or (response.provider_details or {}).get("finish_reason")):
        raise ModelAPIError(chosen.name, "The provider stopped in the middle of its answer.")
    return response


class _Pieces:
    """Cuts the text of an answer into pieces. Together they are `ModelResponse.text`."""

    def __init__(self) -> None:
        self._has_text = False

    def of(self, event: ModelResponseStreamEvent) -> str:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                # Texts with something else between them are paragraphs.
                apart = self._has_text and event.previous_part_kind != "text"
                self._has_text = True
                return f"\n\n{text}" if apart else text
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                return text
        return ""
