"""The clients of the providers."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar, cast

import httpx2
import openai
from openai import AsyncOpenAI
from openai.resources.chat import AsyncCompletions
from openai.types.chat import ChatCompletionChunk
from pydantic import ValidationError
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIStreamedResponse
from pydantic_ai.profiles import JsonSchemaTransformer, ModelProfile, merge_profile
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage

from rota.platform import json
from rota.platform.cache import SizedCache
from rota.platform.model_choice import ModelChoice
from rota.runs.stream_merging import merge_pieces

_HOOKS = {"response": [merge_pieces]}

ResponseT = TypeVar("ResponseT")

# Of the tools' schemas that are kept, as JSON, and what each one has besides. Their objects need
# about ten times as much memory.
MAX_SCHEMA_BYTES = 4 * 1024 * 1024
SCHEMA_ENTRY_BYTES = 100

Key = tuple[bytes, bool | None]
# The rewritten schema, and whether a provider can enforce it.
Kept = tuple[dict[str, Any], bool]


def create(choice: ModelChoice) -> Model:
    """A client that sends each request once.

    The slice repeats failed calls, and its count survives a crash of the worker.
    """
    key = choice.api_key.get_secret_value() if choice.api_key else None
    if choice.provider == "anthropic":
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        anthropic = AsyncAnthropic(
            api_key=key,
            base_url=choice.base_url,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(event_hooks=_HOOKS),
        )
        return AnthropicModel(choice.model, provider=AnthropicProvider(anthropic_client=anthropic))
    if choice.provider == "google":
        from google.genai.types import HttpRetryOptions
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        once = HttpRetryOptions(attempts=1)
        google = GoogleProvider(api_key=key, base_url=choice.base_url, retry_options=once)
        return GoogleModel(choice.model, provider=google)
    client = _Client(
        api_key=key or "none",
        base_url=choice.base_url,
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(event_hooks=_HOOKS),
    )
    client.chat.completions = _Completions(client)  # type: ignore[misc]
    provider = OpenAIProvider(openai_client=client)
    return _ChatModel(choice.model, provider=provider, profile=_openai_profile)


def _openai_profile(default: ModelProfile) -> ModelProfile:
    # Without it, an answer that a broken connection cut off would count as whole.
    whole = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    profile = merge_profile(default, whole)
    if transformer := profile.get("json_schema_transformer"):
        profile["json_schema_transformer"] = keeping(transformer)
    return profile


def keeping(transformer: type[JsonSchemaTransformer]) -> type[JsonSchemaTransformer]:
    """A transformer with the same results, which must not be changed.

    The library rewrites the schema of every tool for each model call, which takes 0.16 ms for a
    usual one: with ten tools, a fifth of what a call costs a worker. The tools of an agent rarely
    change.
    """
    found: SizedCache[Key, Kept] = SizedCache(MAX_SCHEMA_BYTES)

    class Keeping(transformer):  # type: ignore[misc,valid-type]
        def __init__(self, schema: dict[str, Any], *, strict: bool | None = None) -> None:
            self.schema = schema
            self.strict = strict
            self.is_strict_compatible = True

        def walk(self) -> dict[str, Any]:
            key = (json.dumps(self.schema), self.strict)
            kept = found.get(key)
            if kept is None:
                original = transformer(self.schema, strict=self.strict)
                kept = original.walk(), original.is_strict_compatible
                found.put(key, kept, len(key[0]) + SCHEMA_ENTRY_BYTES)
            schema, self.is_strict_compatible = kept
            return schema

    return Keeping


class _Client(AsyncOpenAI):
    """Builds the objects of streamed chunks in compiled code.

    The library builds them in Python, which takes twenty times as long, and half of the processor
    time of a worker whose models stream. It accepts any data, so it still builds the chunks of
    services that deviate from the types.
    """

    def _process_response_data(
        self, *, data: object, cast_to: type[ResponseT], response: httpx2.Response
    ) -> ResponseT:
        if cast_to is ChatCompletionChunk:
            with suppress(ValidationError):
                return cast(ResponseT, ChatCompletionChunk.model_validate(data))
        return super()._process_response_data(data=data, cast_to=cast_to, response=response)


class _Completions(AsyncCompletions):
    """Sends messages and tools as they are.

    The library would compare each of them with every type it could have. With 40 messages and 10
    tools, that stops the event loop for about 20 ms, and changes nothing.
    """

    async def create(  # type: ignore[override]
        self,
        *,
        messages: list[Any],
        extra_body: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        unchecked: dict[str, Any] = {"messages": messages}
        if tools := options.pop("tools", None):
            unchecked["tools"] = tools
        return await super().create(
            messages=[], extra_body={**unchecked, **(extra_body or {})}, **options
        )


class _LastUsage(OpenAIStreamedResponse):
    """Some compatible services report the usage so far with every chunk. The last report counts."""

    def _add_usage(self, usage: RequestUsage, *, reported: bool, cumulative: bool = False) -> None:
        super()._add_usage(usage, reported=reported, cumulative=cumulative or reported)


class _ChatModel(OpenAIChatModel):
    @property
    def _streamed_response_cls(self) -> type[OpenAIStreamedResponse]:
        return _LastUsage
