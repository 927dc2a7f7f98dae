"""Models: which model a name refers to, which takes over from it, how to ask it, and its price."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import cast

from prometheus_client import Counter
from pydantic import SecretStr
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
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from rota.platform.model_choice import ModelChoice
from rota.runs import model_clients
from rota.runs.compaction import ContextWindow
from rota.runs.model_errors import BudgetExceeded, ModelNotConfigured, ModelWithoutPrice
from rota.runs.model_names import ALIASES
from rota.runs.prices import Price, TokenUsage, fixed_price, table_price, table_window

# The context window of a model that neither the operator nor the public table knows.
DEFAULT_WINDOW_TOKENS = 128_000

# A slot of the local model. Its server divides its context among them.
LOCAL_WINDOW_TOKENS = 4_096

# A call that can pay only for a shorter answer is not made.
MIN_OUTPUT_TOKENS = 64
MIN_SUMMARY_TOKENS = 1_000

FAILED_ATTEMPTS = Counter(
    "rota_run_model_failed_attempts_total",
    "Failed attempts of model calls, except those that fail the run at once.",
    ["model"],
)

# After an outage, a worker does not ask a model for this long, unless the others fail too. Without
# it, every call of a run would first wait for a provider that is down.
AVOIDED_S = 30.0

OnText = Callable[[str], None]

# How long a model call can take in total.
MAX_CALL_S = 600


def max_answer_tokens(
    price: Price,
    left_micros: int,
    input_characters: int,
    max_tokens: int,
    at: datetime,
    least: int = MIN_OUTPUT_TOKENS,
) -> int:
    """How long an answer `left_micros` can pay for, up to `max_tokens`."""
    tokens = price.affordable_output_tokens(left_micros, input_characters, max_tokens, at)
    if tokens < least:
        needed_micros = price.max_cost_micros(input_characters, least, at)
        raise BudgetExceeded(needed_micros, left_micros)
    return tokens


@dataclass(frozen=True, slots=True)
class PricedModel:
    name: str
    model: Model
    price: Price
    settings: ModelSettings
    streams: bool
    window: ContextWindow
    # Asks the provider to cache a conversation that goes on.
    caching: ModelSettings = field(default_factory=ModelSettings)


@dataclass(slots=True)
class _State:
    """What a worker knows about a model of a chain."""

    failed_at_s: float = -math.inf
    # When its provider wants to be asked again, if it said so.
    retry_at_s: float | None = None
    # Until when the other models are asked first.
    avoided_until_s: float = -math.inf


class ModelChain:
    """One model or several. The first is asked unless it has failed a moment ago."""

    def __init__(
        self, models: Sequence[PricedModel], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._models = list(models)
        self._now_s = now_s
        # By index and not by name: two providers can have a model of the same name.
        self._states = [_State() for _ in self._models]

    def __len__(self) -> int:
        return len(self._models)

    def choose(self, attempts: int = 0, without: Sequence[PricedModel] = ()) -> PricedModel:
        """The model to ask after this many failed attempts of the call.

        Each failed attempt moves the call on to the next model, on every worker. Among the models
        that this worker avoids, it picks the one that can be retried soonest.
        """
        now_s, first = self._now_s(), attempts % len(self)
        indexes = [*range(first, len(self)), *range(first)]
        left = [index for index in indexes if not _has(without, self._models[index])]

        def key(index: int) -> tuple[bool, float]:
            state = self._states[index]
            if state.avoided_until_s <= now_s:
                return False, 0.0
            return True, now_s if state.retry_at_s is None else max(now_s, state.retry_at_s)

        # `min` returns the first of equal ones.
        return self._models[min(left, key=key)]

    def failed(self, model: PricedModel, after: timedelta | None, *, avoided: bool = True) -> None:
        """Remembers a failed attempt, and after an outage avoids the model for a while."""
        FAILED_ATTEMPTS.labels(model.name).inc()
        now_s, state = self._now_s(), self._states[self._index(model)]
        state.failed_at_s = now_s
        state.retry_at_s = now_s + after.total_seconds() if after else None
        if avoided:
            state.avoided_until_s = now_s + (after.total_seconds() if after else AVOIDED_S)

    def pause_s(self, backoff_s: float, without: Sequence[PricedModel] = ()) -> float:
        """How long it takes until a model can be asked. 0 if one can be asked now.

        A model can be asked when its provider wants it, or else this long after it has failed.
        """
        now_s = self._now_s()
        due_s = (
            state.failed_at_s + backoff_s if state.retry_at_s is None else state.retry_at_s
            for model, state in zip(self._models, self._states, strict=True)
            if not _has(without, model)
        )
        return max(0.0, min(due_s, default=now_s + backoff_s) - now_s)

    def is_first(self, model: PricedModel) -> bool:
        return model is self._models[0]

    def before(self, model: PricedModel) -> list[str]:
        """The models that come before this one, by name."""
        return [each.name for each in self._models[: self._index(model)]]

    def _index(self, model: PricedModel) -> int:
        return next(index for index, each in enumerate(self._models) if each is model)


def _has(models: Sequence[PricedModel], model: PricedModel) -> bool:
    return any(each is model for each in models)


class Models:
    """The models of this deployment, each created once."""

    def __init__(self, choices: Mapping[str, ModelChoice], local_url: str | None) -> None:
        self._choices = dict(choices)
        if local_url and not choices:
            local = ModelChoice(
                model="smollm2",
                base_url=local_url,
                api_key=SecretStr("none"),
                free=True,
                # The model is small and sometimes repeats itself without an end. The limit keeps
                # such answers short. Most of its other answers fit.
                max_output_tokens=800,
                context_window=LOCAL_WINDOW_TOKENS,
                settings={"temperature": 0.3, "frequency_penalty": 0.8},
            )
            self._choices = dict.fromkeys(ALIASES, local)
        self._created: dict[str, ModelChain] = {}

    def create_all(self) -> None:
        """Creates every model now: importing the client of a provider blocks the process."""
        for name in self._choices:
            self.chain(name)

    def chain(self, name: str) -> ModelChain:
        if name not in self._created:
            choice = self._choices.get(name)
            if choice is None:
                raise ModelNotConfigured(name)
            self._created[name] = ModelChain(
                [_priced(each) for each in (choice, *choice.fallbacks)]
            )
        return self._created[name]


# OpenAI and Google cache without being asked.
_CACHING = {
    "anthropic": cast(
        ModelSettings,
        {
            "anthropic_cache_tool_definitions": True,
            "anthropic_cache_instructions": True,
            "anthropic_cache_messages": True,
        },
    )
}


def _priced(choice: ModelChoice) -> PricedModel:
    return PricedModel(
        choice.model,
        model_clients.create(choice),
        price_of(choice),
        cast(ModelSettings, choice.settings | {"max_tokens": choice.max_output_tokens}),
        choice.stream,
        ContextWindow.of(_window_tokens(choice), choice.max_output_tokens),
        _CACHING.get(choice.provider, ModelSettings())
        if choice.prompt_caching
        else ModelSettings(),
    )


def _window_tokens(choice: ModelChoice) -> int:
    """The operator's size of the context window, or else the one in the public table."""
    if choice.context_window is not None:
        return choice.context_window
    return table_window(choice.provider, choice.model) or DEFAULT_WINDOW_TOKENS


def price_of(choice: ModelChoice) -> Price:
    """The operator's price, or else the price in the public table."""
    if choice.free:
        return fixed_price("free")
    if choice.input_usd_per_million is not None and choice.output_usd_per_million is not None:
        return fixed_price(
            "operator",
            input_usd=choice.input_usd_per_million,
            output_usd=choice.output_usd_per_million,
            cached_usd=choice.cached_input_usd_per_million,
            cache_write_usd=_cache_write_usd(choice, choice.input_usd_per_million),
        )
    try:
        return table_price(choice.provider, choice.model)
    except LookupError:
        raise ModelWithoutPrice(choice.model) from None


def _cache_write_usd(choice: ModelChoice, input_usd: Decimal) -> Decimal | None:
    """The operator's price, or what Anthropic bills. Other providers bill it like other input."""
    if choice.cache_write_usd_per_million is not None or choice.provider != "anthropic":
        return choice.cache_write_usd_per_million
    return input_usd * Decimal("1.25")


# A higher count is a mistake of the provider.
_MAX_TOKENS = 10**9


def usage_of(response: ModelResponse) -> TokenUsage:
    """The tokens that the provider reported, limited to what is possible. 0 if it did not."""
    usage = response.usage
    input_tokens, output_tokens = _count(usage.input_tokens), _count(usage.output_tokens)
    reasoning_tokens = _count(usage.output_reasoning_tokens)
    if reasoning_tokens > output_tokens:
        # Some providers do not include reasoning in the output.
        output_tokens += reasoning_tokens
    read = min(_count(usage.cache_read_tokens), input_tokens)
    written = min(_count(usage.cache_write_tokens), input_tokens - read)
    return TokenUsage(
        input_tokens,
        output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=min(_count(usage.cache_write_1h_tokens), written),
        reasoning_tokens=reasoning_tokens,
    )


def _count(tokens: int) -> int:
    return tokens if 0 < tokens <= _MAX_TOKENS else 0


async def ask(
    chosen: PricedModel,
    conversation: list[ModelMessage],
    settings: ModelSettings,
    parameters: ModelRequestParameters,
    on_text: OnText,
) -> ModelResponse:
    """The whole answer. `on_text` gets each piece of its text when it arrives."""
    async with asyncio.timeout(MAX_CALL_S):
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
