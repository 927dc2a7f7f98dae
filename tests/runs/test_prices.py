"""Prices: every model of the public table, and the most that a call can cost."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product

import pytest
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from rota.runs.prices import CHARACTERS_PER_TOKEN, Price, TokenUsage, fixed_price, table_price

# Some prices depend on the time of day.
MOMENTS = (datetime(2026, 11, 2, 3, 30, tzinfo=UTC), datetime(2026, 11, 2, 18, 45, tzinfo=UTC))

MIXES = (
    TokenUsage(10_000, 1_000),
    TokenUsage(10_000, 1_000, cache_read_tokens=9_000, reasoning_tokens=600),
    TokenUsage(
        50_001, 333, cache_read_tokens=7, cache_write_tokens=40_001, cache_write_1h_tokens=11_111
    ),
    TokenUsage(300_001, 4_000, cache_read_tokens=123_456, cache_write_tokens=1),
    TokenUsage(1, 8_192, reasoning_tokens=8_191),
)


def table(*, priced: bool = True) -> Iterator[tuple[str, str]]:
    """Every model that can be looked up, with or without prices for tokens."""
    for provider in get_snapshot().providers:
        for model in provider.models:
            if provider.find_model(model.id) is not None:
                prices = [model.get_prices(at) for at in MOMENTS]
                missing = any(None in (p.input_mtok, p.output_mtok) for p in prices)
                if missing != priced:
                    yield provider.id, model.id


def library_micros(provider: str, model: str, usage: TokenUsage, at: datetime) -> Decimal:
    found = calc_price(
        Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            cache_write_1h_tokens=usage.cache_write_1h_tokens,
            output_reasoning_tokens=usage.reasoning_tokens,
        ),
        model,
        provider_id=provider,
        genai_request_timestamp=at,
    )
    return found.total_price * 1_000_000


def test_every_model_of_the_table_costs_what_the_table_says() -> None:
    models = list(table())
    assert len(models) > 1_900
    wrong = [
        (provider, model, usage)
        for (provider, model), usage, at in product(models, MIXES, MOMENTS)
        if table_price(provider, model).cost_micros(usage, at)
        != math.ceil(library_micros(provider, model, usage, at))
    ]
    assert wrong == []


def test_a_model_of_the_table_without_prices_for_tokens_has_no_price() -> None:
    models = list(table(priced=False))
    assert {("openai", "whisper-1"), ("openai", "text-embedding-3-small")} <= set(models)
    for provider, model in models:
        with pytest.raises(LookupError):
            table_price(provider, model)


@pytest.mark.parametrize(
    ("provider", "model", "usage", "micros"),
    [
        # Up to 200,000 tokens of input: $1.25 and $10. Above: $2.50 and $15, for all tokens.
        ("google", "gemini-2.5-pro", TokenUsage(10_000, 1_000), 12_500 + 10_000),
        ("google", "gemini-2.5-pro", TokenUsage(200_001, 1_000), 500_003 + 15_000),
        # $1.25 and $10, and $0.125 for cached input.
        ("openai", "gpt-5", TokenUsage(10_000, 0, cache_read_tokens=9_000), 1_250 + 1_125),
        # $2 and $8, and $0.50 for cached input.
        ("openai", "gpt-4.1", TokenUsage(10_000, 0, cache_read_tokens=9_000), 2_000 + 4_500),
    ],
)
def test_published_prices_are_charged(
    provider: str, model: str, usage: TokenUsage, micros: int
) -> None:
    assert table_price(provider, model).cost_micros(usage, MOMENTS[0]) == micros


def possible_calls(price: Price, max_input: int, max_output: int) -> Iterator[TokenUsage]:
    """Calls of up to this size: just below, at and above every tier, with every kind of token."""
    prices = vars(price.prices_at(MOMENTS[0])).values()
    starts = {t.start for p in prices if isinstance(p, TieredPrices) for t in p.tiers}
    sizes = {max_input, *(s + off for s in starts for off in (0, 1) if s + off <= max_input)}
    for size, output in product(sizes, (0, max_output)):
        yield TokenUsage(size, output)
        yield TokenUsage(size, output, cache_write_tokens=size)
        yield TokenUsage(size, output, cache_write_tokens=size, cache_write_1h_tokens=size)
        yield TokenUsage(size, output, cache_read_tokens=size, reasoning_tokens=output)


def test_no_call_can_cost_more_than_the_hold_was_checked_for() -> None:
    tiered = 0
    for provider, model in table():
        price, at = table_price(provider, model), MOMENTS[0]
        tiered += any(isinstance(p, TieredPrices) for p in vars(price.prices_at(at)).values())
        for max_input, left_micros in ((9_001, 40_000), (250_001, 3_000_000)):
            characters = (max_input - 1) * CHARACTERS_PER_TOKEN
            tokens = price.affordable_output_tokens(left_micros, characters, 8_192, at)
            costs = [price.cost_micros(u, at) for u in possible_calls(price, max_input, tokens)]
            limit = price.max_cost_micros(characters, tokens, at)
            assert max(costs) == limit, (provider, model)
            assert limit <= left_micros or tokens == 0, (provider, model)
            if 0 < tokens < 8_192:
                assert price.max_cost_micros(characters, tokens + 1, at) > left_micros
    assert tiered > 50


def test_input_alone_can_exceed_the_hold() -> None:
    price = fixed_price("test", input_usd=Decimal(1))
    assert price.affordable_output_tokens(100, 300, 400, MOMENTS[0]) == 0
    assert price.affordable_output_tokens(101, 300, 400, MOMENTS[0]) == 400
