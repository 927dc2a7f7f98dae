"""Models: which one an agent's word means, how it is called, and what a call costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from typing import Any, cast

from genai_prices import Usage, calc_price
from openai import AsyncOpenAI
from pydantic import SecretStr
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
)
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from rota.platform.settings import ModelChoice

# Agents name one of these, or a model of the operator's own list.
ALIASES = ("default", "fast", "strong")


class GiveUp(Exception):
    """The run cannot go on. `code` and the message are for whoever looks at the task."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable


class TryAgain(Exception):
    """A passing fault: the same call may well succeed a little later."""

    def __init__(self, message: str, after: timedelta | None = None) -> None:
        super().__init__(message)
        # What the provider asked for, if it did.
        self.after = after


class ContentFiltered(GiveUp):
    def __init__(self) -> None:
        super().__init__(
            "CONTENT_FILTERED",
            "The provider's content filter stopped the answer. Change the task's input.",
        )


# A provider that answers nonsense as often as this will go on to.
_MALFORMED_TIMES = 3
_LONGEST_WAIT = timedelta(minutes=5)

# An answer shorter than this is not worth the call.
MIN_OUTPUT_TOKENS = 64
# A conservative estimate of the input's size: text has at least this many characters per token.
CHARACTERS_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars for a million tokens, and which table says so."""

    input_micros: int
    output_micros: int
    version: str

    def cost_micros(self, input_tokens: int, output_tokens: int) -> int:
        """Rounded up: a fraction of a micro-dollar is one."""
        total = input_tokens * self.input_micros + output_tokens * self.output_micros
        return math.ceil(total / 1_000_000)

    def max_cost_micros(self, input_characters: int, output_tokens: int) -> int:
        """The most that a call can cost, as far as this is known before the call."""
        return self.cost_micros(input_characters // CHARACTERS_PER_TOKEN + 1, output_tokens)

    def affordable_output_tokens(
        self, left_micros: int, input_characters: int, max_tokens: int
    ) -> int:
        """How long an answer `left_micros` can pay for, up to `max_tokens`."""
        if self.output_micros == 0 and self.input_micros == 0:
            return max_tokens
        for_input = self.max_cost_micros(input_characters, 0)
        tokens = (left_micros - for_input) * 1_000_000 // max(1, self.output_micros)
        if tokens < MIN_OUTPUT_TOKENS:
            raise GiveUp(
                "BUDGET_EXCEEDED",
                "The next model call could cost more than is left of the budget. Retried from "
                "failure, the task goes on with a new one.",
                retryable=True,
            )
        return min(tokens, max_tokens)


@dataclass(frozen=True, slots=True)
class PricedModel:
    name: str
    model: Model
    price: Price
    settings: ModelSettings


class Models:
    """The models of this deployment, made when they are first needed."""

    def __init__(self, choices: Mapping[str, ModelChoice], local_url: str | None) -> None:
        self._choices = dict(choices)
        if local_url and not choices:
            local = ModelChoice(
                model="smollm2",
                base_url=local_url,
                api_key=SecretStr("none"),
                free=True,
                # It is small and rambles; a person who tries it out should not wait long.
                max_output_tokens=300,
                settings={"temperature": 0.3, "frequency_penalty": 0.8},
            )
            self._choices = dict.fromkeys(ALIASES, local)
        self._made: dict[str, PricedModel] = {}

    def get(self, name: str) -> PricedModel:
        if name not in self._made:
            choice = self._choices.get(name)
            if choice is None:
                raise GiveUp(
                    "MODEL_NOT_CONFIGURED",
                    f"No model is configured as {name!r}. Add it to ROTA_MODELS, then retry.",
                    retryable=True,
                )
            self._made[name] = PricedModel(
                choice.model,
                _make(choice),
                price_of(choice),
                cast(ModelSettings, choice.settings | {"max_tokens": choice.max_output_tokens}),
            )
        return self._made[name]


def _make(choice: ModelChoice) -> Model:
    key = choice.api_key.get_secret_value() if choice.api_key else None
    if choice.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        return AnthropicModel(
            choice.model, provider=AnthropicProvider(api_key=key, base_url=choice.base_url)
        )
    if choice.provider == "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(
            choice.model, provider=GoogleProvider(api_key=key, base_url=choice.base_url)
        )
    # Trying again is the engine's to do: it lasts longer, and outlives the worker.
    client = AsyncOpenAI(api_key=key or "none", base_url=choice.base_url, max_retries=0)
    return OpenAIChatModel(choice.model, provider=OpenAIProvider(openai_client=client))


def price_of(choice: ModelChoice) -> Price:
    """The operator's price if there is one, else the public table's."""
    if choice.free:
        return Price(0, 0, "free")
    if choice.input_usd_per_million is not None and choice.output_usd_per_million is not None:
        return Price(
            math.ceil(choice.input_usd_per_million * 1_000_000),
            math.ceil(choice.output_usd_per_million * 1_000_000),
            "operator",
        )
    try:
        for_input, for_output = (
            math.ceil(
                calc_price(usage, choice.model, provider_id=choice.provider).total_price * 1_000_000
            )
            for usage in (Usage(input_tokens=1_000_000), Usage(output_tokens=1_000_000))
        )
    except LookupError:
        raise GiveUp(
            "MODEL_WITHOUT_PRICE",
            f"There is no price for {choice.model!r}. Set inputUsdPerMillion and "
            "outputUsdPerMillion in ROTA_MODELS, then retry.",
            retryable=True,
        ) from None
    return Price(for_input, for_output, f"genai-prices/{version('genai-prices')}")


def classify_error(error: Exception, attempt: int = 1) -> Exception:
    """What a provider's error means for the run, at the so-manieth attempt."""
    match error:
        case ModelAuthenticationError():
            return GiveUp(
                "MODEL_AUTHENTICATION_FAILED",
                "The model provider refused our credentials. Mend ROTA_MODELS, then retry.",
                retryable=True,
            )
        case ModelQuotaExceededError():
            return GiveUp(
                "MODEL_QUOTA_EXCEEDED",
                "The quota at the model provider is used up. Raise it, then retry.",
                retryable=True,
            )
        case ModelNotFoundError():
            return GiveUp(
                "MODEL_NOT_FOUND",
                "The provider does not know the model. Mend ROTA_MODELS, then retry.",
                retryable=True,
            )
        case ModelContextWindowExceededError():
            return GiveUp("CONTEXT_TOO_LONG", "The work no longer fits into the model's context.")
        case ContentFilterError():
            return ContentFiltered()
        case ModelRequestRejectedError():
            return GiveUp("MODEL_REFUSED_REQUEST", f"The provider refused the request: {error}")
        case ModelAPIError():
            wait = timedelta(seconds=error.retry_after) if error.retry_after else None
            return TryAgain(_named(error), min(wait, _LONGEST_WAIT) if wait else None)
        case OSError() | TimeoutError():
            return TryAgain(_named(error))
    # Whatever else comes out of a request comes from an answer that could not be read.
    if attempt < _MALFORMED_TIMES:
        return TryAgain(_named(error))
    return GiveUp(
        "MODEL_ANSWER_MALFORMED",
        "The provider's answers are not what its protocol says.",
        retryable=True,
    )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def usage_of(response: Any) -> tuple[int, int]:
    return response.usage.input_tokens or 0, response.usage.output_tokens or 0
