"""The models of ROTA_MODELS, and which of them take over from which."""

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, SecretStr, model_validator
from pydantic.alias_generators import to_camel

from rota.platform.strict import StrictModel

NESTED_CHAIN = (
    "a model in a list cannot have `fallbacks`; put all models into one list, in the order in "
    "which they take over"
)


class ModelChoice(StrictModel):
    """A model that agents can use, and how to reach it."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )

    provider: Literal["openai", "anthropic", "google"] = "openai"
    model: str
    # For the provider `openai`: any server with an OpenAI-compatible API.
    base_url: str | None = None
    api_key: SecretStr | None = None
    # The operator's prices: both or neither. Without them, a public price list is used.
    input_usd_per_million: Annotated[Decimal, Field(ge=0)] | None = None
    output_usd_per_million: Annotated[Decimal, Field(ge=0)] | None = None
    # For input that the provider read from its cache. Without it, cached input has the full price.
    cached_input_usd_per_million: Annotated[Decimal, Field(ge=0)] | None = None
    # For input that the provider writes to its cache. Without it, Anthropic's is a quarter more.
    cache_write_usd_per_million: Annotated[Decimal, Field(ge=0)] | None = None
    free: bool = False
    # The maximum length of a response.
    max_output_tokens: Annotated[int, Field(ge=64)] = 8_192
    # How many tokens a request and its answer can have together. Without it, the public table's.
    context_window: Annotated[int, Field(ge=2_048)] | None = None
    # Whether to ask a provider to cache the conversation, if it does so only on request.
    prompt_caching: bool = True
    # False for a service that cannot stream its answers. Watchers then see a text when it is whole.
    stream: bool = True
    # Sent with every request: {"temperature": 0.2, …}
    settings: dict[str, float] = Field(default_factory=dict)
    # The models that take over while this one is not available. In ROTA_MODELS, a name can have a
    # list.
    fallbacks: tuple["ModelChoice", ...] = ()

    @model_validator(mode="after")
    def _has_whole_price(self) -> Self:
        prices = (self.input_usd_per_million, self.output_usd_per_million)
        cache_prices = {
            "cachedInputUsdPerMillion": self.cached_input_usd_per_million,
            "cacheWriteUsdPerMillion": self.cache_write_usd_per_million,
        }
        if self.free and any(price is not None for price in (*prices, *cache_prices.values())):
            raise ValueError("a model with free: true cannot have prices; remove one of the two")
        if (prices[0] is None) != (prices[1] is None):
            raise ValueError("set both inputUsdPerMillion and outputUsdPerMillion, or neither")
        for name, price in cache_prices.items():
            if price is not None and None in prices:
                raise ValueError(f"{name} needs inputUsdPerMillion and outputUsdPerMillion")
        return self

    @model_validator(mode="after")
    def _is_one_chain(self) -> Self:
        if any(choice.fallbacks for choice in self.fallbacks):
            raise ValueError(NESTED_CHAIN)
        return self


def read_chains(models: object) -> object:
    """A list of models is its first model, with the others in `fallbacks`."""
    if not isinstance(models, dict):
        return models
    for given in models.values():
        if isinstance(given, list) and any(
            isinstance(each, dict) and each.get("fallbacks") for each in given
        ):
            raise ValueError(NESTED_CHAIN)
    return {
        name: {**given[0], "fallbacks": given[1:]}
        if isinstance(given, list) and given and isinstance(given[0], dict)
        else given
        for name, given in models.items()
    }
