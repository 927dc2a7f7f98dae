"""Models: which one an agent's word means, how it is called, and what a call costs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from genai_prices import Usage, calc_price
from pydantic import SecretStr
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UnexpectedModelBehavior,
)
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from rota.platform.settings import ModelSettings as ModelChoice

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


@dataclass(frozen=True, slots=True)
class PricedModel:
    name: str
    model: Model
    price: Price
    max_output_tokens: int


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
                max_output_tokens=400,
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
                choice.model, _make(choice), price_of(choice), choice.max_output_tokens
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
    return OpenAIChatModel(
        choice.model, provider=OpenAIProvider(base_url=choice.base_url, api_key=key)
    )


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


def told_apart(error: Exception) -> Exception:
    """What a provider's error means for the run."""
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
            return GiveUp("MODEL_NOT_FOUND", "The provider does not know the model.")
        case ModelContextWindowExceededError():
            return GiveUp("CONTEXT_TOO_LONG", "The work no longer fits into the model's context.")
        case ContentFilterError():
            return GiveUp("CONTENT_FILTERED", "The provider's content filter stopped the answer.")
        case ModelRequestRejectedError():
            return GiveUp("MODEL_REFUSED_REQUEST", f"The provider refused the request: {error}")
        case ModelAPIError() | UnexpectedModelBehavior() | OSError() | TimeoutError():
            return TryAgain(f"{type(error).__name__}: {error}")
    return error


def usage_of(response: Any) -> tuple[int, int]:
    return response.usage.input_tokens or 0, response.usage.output_tokens or 0
