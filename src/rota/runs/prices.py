"""What a model call costs, to the micro-dollar."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version

from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice, TieredPrices

# A conservative estimate of the input's size: text has at least this many characters per token.
CHARACTERS_PER_TOKEN = 3

# OpenAI divides the window of its large models since GPT-5: a part of it is for the answer alone.
# A request to a model with 400,000 tokens can have 272,000.
_DIVIDED = re.compile(r"gpt-[5-9]")
_OPENAI_DIVIDED = 400_000
_OPENAI_OUTPUT = 128_000

_MICROS = 1_000_000
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of a call. Input includes cached tokens, and output includes reasoning."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    # The part of the cache writes that the provider keeps for an hour.
    cache_write_1h_tokens: int = 0
    reasoning_tokens: int = 0
    # Whether Rota counted tokens, because the provider did not report them.
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Price:
    """The prices of a model, and where they come from.

    The library of the public table computes every cost: prices can depend on the size of the
    input, on the time of day, and on how much of the input was cached.
    """

    prices_at: Callable[[datetime], ModelPrice]
    version: str

    def cost_micros(self, usage: TokenUsage, at: datetime) -> int:
        """The cost of a call that began at this time, rounded up to a micro-dollar."""
        return math.ceil(_micros(self.prices_at(at), _library_usage(usage)))

    def max_cost_micros(self, input_characters: int, output_tokens: int, at: datetime) -> int:
        """The most that a call can cost, as far as this is known before the call."""
        return max(
            math.ceil(for_input + for_token * output_tokens)
            for for_input, for_token in self._possible_costs(input_characters, at)
        )

    def affordable_output_tokens(
        self, left_micros: int, input_characters: int, max_tokens: int, at: datetime
    ) -> int:
        """How long an answer `left_micros` can pay for, from 0 to `max_tokens`."""
        affordable = max_tokens
        for for_input, for_token in self._possible_costs(input_characters, at):
            left = left_micros - for_input
            if left < 0:
                return 0
            if for_token > 0:
                affordable = min(affordable, int(left // for_token))
        return affordable

    def _possible_costs(
        self, input_characters: int, at: datetime
    ) -> Iterator[tuple[Decimal, Decimal]]:
        """What the input and each token of the answer cost, in every way the call can be priced.

        The input can fall into each price tier up to its estimated size. It can come from the
        provider's cache or be written to it, and the answer can be all reasoning.
        """
        prices = self.prices_at(at)
        max_input = input_characters // CHARACTERS_PER_TOKEN + 1
        tiers = {
            tier.start
            for price in vars(prices).values()
            if isinstance(price, TieredPrices)
            for tier in price.tiers
            if tier.start < max_input
        }
        for tokens in (max_input, *tiers):
            for cached in _CACHED:
                if not _has_prices(prices, cached):
                    continue
                given = dict.fromkeys(("input_tokens", *cached), tokens)
                for_input = _micros(prices, Usage(**given))
                for reasoning in _REASONING:
                    if _has_prices(prices, reasoning):
                        answer = dict.fromkeys(("output_tokens", *reasoning), _MILLION)
                        whole = _micros(prices, Usage(**given, **answer))
                        yield for_input, (whole - for_input) / _MILLION


# What a call's input can be besides plain input, and what its answer can be besides text.
_CACHED = (
    (),
    ("cache_read_tokens",),
    ("cache_write_tokens",),
    ("cache_write_tokens", "cache_write_1h_tokens"),
)
_REASONING = ((), ("output_reasoning_tokens",))


def _has_prices(prices: ModelPrice, usage_keys: tuple[str, ...]) -> bool:
    keys = [key.replace("_tokens", "_mtok") for key in usage_keys]
    return all(getattr(prices, key) is not None for key in keys)


def _micros(prices: ModelPrice, usage: Usage) -> Decimal:
    return prices.calc_price(usage)["total_price"] * _MICROS


def _library_usage(usage: TokenUsage) -> Usage:
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_1h_tokens=usage.cache_write_1h_tokens,
        output_reasoning_tokens=usage.reasoning_tokens,
    )


def fixed_price(
    version: str,
    *,
    input_usd: Decimal = Decimal(0),
    output_usd: Decimal = Decimal(0),
    cached_usd: Decimal | None = None,
    cache_write_usd: Decimal | None = None,
) -> Price:
    """The same price at all times, in dollars per million tokens."""
    prices = ModelPrice(
        input_mtok=input_usd,
        output_mtok=output_usd,
        cache_read_mtok=cached_usd,
        cache_write_mtok=cache_write_usd,
    )
    return Price(lambda _: prices, version)


def table_price(provider: str, model: str) -> Price:
    """The price in the public table. Raises LookupError if the table does not have one.

    An entry without a price for input or output tokens is not a price: its calls would be free.
    """
    _, found = get_snapshot().find_provider_model(model, None, provider, None)
    listed = found.prices
    prices = [listed] if isinstance(listed, ModelPrice) else [each.prices for each in listed]
    if any(each.input_mtok is None or each.output_mtok is None for each in prices):
        raise LookupError(f"{provider}/{model} has no price for tokens")
    return Price(found.get_prices, f"genai-prices/{version('genai-prices')}")


def table_window(provider: str, model: str) -> int | None:
    """The size of the context window in the public table, in tokens, if it has one."""
    try:
        _, found = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    tokens = found.context_window
    if tokens and provider == "openai" and tokens >= _OPENAI_DIVIDED and _DIVIDED.match(found.id):
        tokens -= _OPENAI_OUTPUT
    return tokens
