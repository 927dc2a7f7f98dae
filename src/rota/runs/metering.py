"""Measures a model call: its tokens and what they cost."""

import asyncio
from datetime import datetime

import structlog
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.tools import ToolDefinition

from rota.runs import token_estimate
from rota.runs.call_protection import finish_despite_cancellation
from rota.runs.models import usage_of
from rota.runs.prices import Price, TokenUsage

log = structlog.get_logger()


async def measure(
    price: Price,
    at: datetime,
    conversation: list[ModelMessage],
    tools: list[ToolDefinition],
    response: ModelResponse,
    input_characters: int,
) -> tuple[TokenUsage, int]:
    """The tokens of a call and its cost. The provider bills the call, so there is always a cost."""
    try:
        usage = await _count_tokens(conversation, tools, response)
        return usage, price.cost_micros(usage, at)
    except Exception as error:
        # Without the message, which can quote the conversation.
        log.error("token_count_failed", error=type(error).__name__)
        usage = token_estimate.by_characters(input_characters, response)
        return usage, price.cost_micros(usage, at)


async def _count_tokens(
    conversation: list[ModelMessage], tools: list[ToolDefinition], response: ModelResponse
) -> TokenUsage:
    usage = usage_of(response)
    if token_estimate.is_complete(usage, response):
        return usage
    # In a thread, because counting takes long. It finishes even if the task is cancelled.
    return await finish_despite_cancellation(
        asyncio.to_thread(token_estimate.complete, usage, conversation, tools, response)
    )
