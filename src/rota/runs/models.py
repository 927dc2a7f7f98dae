"""Models: which model a name refers to, how to call it, and what a call costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import ClassVar, cast

from pydantic import SecretStr
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
)
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from rota.platform.model_choice import ModelChoice
from rota.runs import model_clients
from rota.runs.compaction import Window
from rota.runs.model_chain import ModelChain
from rota.runs.model_names import ALIASES
from rota.runs.prices import Price, TokenUsage, fixed_price, table_price, table_window


class GiveUp(Exception):
    """The run cannot continue. The task shows the code and the message."""

    code: ClassVar[str]
    # Whether the same task can succeed unchanged.
    retryable: ClassVar[bool] = False

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ModelNotConfigured(GiveUp):
    code = "MODEL_NOT_CONFIGURED"
    retryable = True

    def __init__(self, name: str) -> None:
        super().__init__(f"ROTA_MODELS has no model {name!r}. Add it, then retry the task.")


class ModelWithoutPrice(GiveUp):
    code = "MODEL_WITHOUT_PRICE"
    retryable = True

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The price of the model {model!r} is unknown. Set inputUsdPerMillion and "
            "outputUsdPerMillion in ROTA_MODELS, then retry the task."
        )


class ModelAuthenticationFailed(GiveUp):
    code = "MODEL_AUTHENTICATION_FAILED"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model provider refused the API key. Correct it in ROTA_MODELS, then retry the "
            "task from the failed step."
        )


class ModelQuotaExceeded(GiveUp):
    code = "MODEL_QUOTA_EXCEEDED"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The quota at the model provider is used up. Raise it, then retry the task from the "
            "failed step."
        )


class ModelNotFound(GiveUp):
    code = "MODEL_NOT_FOUND"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model provider does not have this model. Correct its name in ROTA_MODELS, then "
            "retry the task from the failed step."
        )


class ContextTooLong(GiveUp):
    code = "CONTEXT_TOO_LONG"

    def __init__(self) -> None:
        super().__init__(
            "The conversation no longer fits into the model's context. Shorten the task's input, "
            "or divide the task."
        )


class ContentFiltered(GiveUp):
    code = "CONTENT_FILTERED"

    def __init__(self) -> None:
        super().__init__(
            "The provider's content filter stopped the answer. Change the task's input."
        )


class ModelRefusedRequest(GiveUp):
    code = "MODEL_REFUSED_REQUEST"

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"The model provider refused the request ({error}). Check the model in ROTA_MODELS, "
            "or change the task's input."
        )


class ModelAnswerMalformed(GiveUp):
    code = "MODEL_ANSWER_MALFORMED"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model provider's answers are unreadable. Check baseUrl in ROTA_MODELS, then retry "
            "the task from the failed step."
        )


class ModelAnswerUnusable(GiveUp):
    code = "MODEL_ANSWER_UNUSABLE"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "The model's answer cannot be processed. The answer is charged. Retry the task from "
            "the failed step to ask the model again."
        )


class BudgetExceeded(GiveUp):
    code = "BUDGET_EXCEEDED"
    retryable = True

    def __init__(self, needed_micros: int, left_micros: int) -> None:
        super().__init__(
            f"The next model call needs at least {_dollars(needed_micros)}, but only "
            f"{_dollars(left_micros)} of the run's hold is left. Retry the task from the failed "
            "step to continue with a new budget."
        )
        self.needed_micros = needed_micros
        self.left_micros = left_micros


def _dollars(micros: int) -> str:
    return f"${micros // 1_000_000}.{micros % 1_000_000:06d}"


class TryAgain(Exception):
    """A temporary error: the same call can succeed later."""

    def __init__(
        self, message: str, after: timedelta | None = None, *, is_outage: bool = True
    ) -> None:
        super().__init__(message)
        # How long the provider asks to wait, if it does.
        self.after = after
        # Whether the provider is not available. Otherwise only this call has failed.
        self.is_outage = is_outage
        # The models of the chain that are too expensive for the run.
        self.without: list[PricedModel] = []


# After this many unreadable answers to the same call, the run fails.
_MAX_MALFORMED_ANSWERS = 3
_MAX_RETRY_AFTER = timedelta(minutes=5)
# Anthropic: "input length and `max_tokens` exceed context limit: …"
_TOO_LONG = "exceed context limit"

# The context window of a model that neither the operator nor the public table knows.
DEFAULT_WINDOW_TOKENS = 128_000

# A slot of the local model. Its server divides its context among them.
LOCAL_WINDOW_TOKENS = 4_096

# A call that can pay only for a shorter answer is not made.
MIN_OUTPUT_TOKENS = 64
MIN_SUMMARY_TOKENS = 1_000


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
    window: Window
    # Asks the provider to cache a conversation that goes on.
    caching: ModelSettings = field(default_factory=ModelSettings)


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
        Window.of(_window_tokens(choice), choice.max_output_tokens),
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


def classify_error(error: Exception, attempt: int = 1) -> Exception:
    """What a provider's error on this attempt means for the run."""
    match error:
        case ModelAuthenticationError():
            return ModelAuthenticationFailed()
        case ModelQuotaExceededError():
            return ModelQuotaExceeded()
        case ModelNotFoundError():
            return ModelNotFound()
        case ModelContextWindowExceededError() | ModelHTTPError(status_code=413):
            return ContextTooLong()
        case ModelRequestRejectedError() if _TOO_LONG in str(error).lower():
            return ContextTooLong()
        case ContentFilterError():
            return ContentFiltered()
        case ModelRequestRejectedError():
            return ModelRefusedRequest(error)
        case ModelAPIError():
            wait = timedelta(seconds=error.retry_after) if error.retry_after else None
            after = min(wait, _MAX_RETRY_AFTER) if wait else None
            return TryAgain(_describe(error), after, is_outage=_is_outage(error))
        case OSError() | TimeoutError():
            return TryAgain(_describe(error))
    # All other errors come from an answer that the client library cannot read.
    if attempt < _MAX_MALFORMED_ANSWERS:
        return TryAgain(_describe(error), is_outage=False)
    return ModelAnswerMalformed()


def _is_outage(error: ModelAPIError) -> bool:
    """Whether a request of another run would fail too. An error without a status broke off."""
    if not isinstance(error, ModelHTTPError):
        return True
    return error.status_code in (408, 429) or error.status_code >= 500


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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
