"""Counts the tokens of a call for a provider that does not report them.

The vocabulary of OpenAI's models since GPT-4o is part of the package, because `tiktoken` would
download it. Other models split text differently, but their counts are close.
"""

import base64
import lzma
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import tiktoken
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.tools import ToolDefinition

from rota.platform import json
from rota.runs.prices import CHARACTERS_PER_TOKEN, TokenUsage

# The file that tiktoken downloads, with SHA-256
# 446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d after decompression.
_VOCABULARY = Path(__file__).parent / "o200k_base.tiktoken.xz"
# How tiktoken's `o200k_base` splits text into words.
_WORDS = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
# Words without a space can be as long as the text, and long words take long to encode.
_CHUNK_CHARACTERS = 10_000
# What the format of a chat adds to each message, and before the answer.
_MESSAGE_TOKENS = 3
_ANSWER_TOKENS = 3

_loading = threading.Lock()


@cache
def _load() -> tiktoken.Encoding:
    lines = lzma.decompress(_VOCABULARY.read_bytes()).splitlines()
    words = (line.split() for line in lines)
    ranks = {base64.b64decode(word): int(rank) for word, rank in words}
    return tiktoken.Encoding("o200k", pat_str=_WORDS, mergeable_ranks=ranks, special_tokens={})


def count(text: str) -> int:
    """How many tokens the text has."""
    with _loading:
        encoding = _load()
    return sum(
        len(encoding.encode_ordinary(text[start : start + _CHUNK_CHARACTERS]))
        for start in range(0, len(text), _CHUNK_CHARACTERS)
    )


def complete(
    usage: TokenUsage,
    conversation: Sequence[ModelMessage],
    tools: Sequence[ToolDefinition],
    response: ModelResponse,
) -> TokenUsage:
    """Counts what the provider did not report. Takes a second at the first use in a process."""
    if usage.input_tokens == 0:
        usage = replace(usage, input_tokens=input_tokens(conversation, tools), estimated=True)
    if usage.output_tokens == 0 and (tokens := sum(map(count, _texts(response)))):
        usage = replace(usage, output_tokens=tokens, estimated=True)
    return usage


def by_characters(input_characters: int, response: ModelResponse) -> TokenUsage:
    """A rough count that cannot fail, for an answer whose tokens cannot be counted."""
    answer = sum(
        len(str(getattr(part, name, "")))
        for part in response.parts
        for name in ("content", "tool_name", "args")
    )
    return TokenUsage(
        input_characters // CHARACTERS_PER_TOKEN + 1,
        answer // CHARACTERS_PER_TOKEN + 1,
        estimated=True,
    )


def is_complete(usage: TokenUsage, response: ModelResponse) -> bool:
    return usage.input_tokens > 0 and (usage.output_tokens > 0 or not response.parts)


def input_tokens(conversation: Sequence[ModelMessage], tools: Sequence[ToolDefinition]) -> int:
    tokens = _ANSWER_TOKENS
    for message in conversation:
        if isinstance(message, ModelResponse):
            # The role is one token.
            tokens += _MESSAGE_TOKENS + 1 + sum(map(count, _texts(message)))
        else:
            for part in message.parts:
                content = getattr(part, "content", None)
                tokens += _MESSAGE_TOKENS + 1 + (count(content) if isinstance(content, str) else 0)
    for tool in tools:
        schema = json.dumps(tool.parameters_json_schema).decode()
        tokens += _MESSAGE_TOKENS + count(f"{tool.name} {tool.description or ''} {schema}")
    return tokens


def _texts(response: ModelResponse) -> Iterator[str]:
    for part in response.parts:
        if isinstance(part, TextPart | ThinkingPart):
            yield part.content
        elif isinstance(part, ToolCallPart):
            yield part.tool_name
            yield part.args if isinstance(part.args, str) else json.dumps(part.args).decode()
