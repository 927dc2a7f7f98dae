"""Rounding, months, and the balance in responses."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.credits.money import available_cents, exact_usd, of_cents, spent_cents, usd
from rota.credits.queries import Balance
from rota.credits.schemas import BalanceResponse, UsageBar
from rota.platform import clock

RESET = datetime(2026, 12, 15, tzinfo=UTC)


def balance(**changes: Any) -> Balance:
    nothing = dict.fromkeys(Balance.__dataclass_fields__, 0)
    return Balance(
        **(
            nothing
            | {"allow_overflow": True, "period_anchor": None, "period_ends_at": None}
            | changes
        )
    )


@given(st.integers(0, 10**15))
def test_available_money_rounds_down_and_spent_money_rounds_up(micros: int) -> None:
    down, up = available_cents(micros), spent_cents(micros)
    assert of_cents(down) <= micros <= of_cents(up)
    assert up - down == (micros % 10_000 != 0)


@pytest.mark.parametrize(
    ("cents", "text"),
    [(0, "0.00"), (5, "0.05"), (1234, "12.34"), (100_000, "1000.00"), (-5, "-0.05")],
)
def test_dollars_have_two_decimals(cents: int, text: str) -> None:
    assert usd(cents) == text


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0.000000"),
        (11_700, "0.011700"),
        (1_000_001, "1.000001"),
        (-5, "-0.000005"),
        # As a float, this amount loses its last digits.
        (2**63 - 1, "9223372036854.775807"),
    ],
)
def test_exact_dollars_keep_every_micro_dollar(micros: int, text: str) -> None:
    assert exact_usd(micros) == text


@pytest.mark.parametrize(
    ("anchor", "months", "expected"),
    [
        ("2027-01-31", 1, "2027-02-28"),
        ("2028-01-31", 1, "2028-02-29"),
        ("2027-01-31", 2, "2027-03-31"),
        ("2027-01-31", 3, "2027-04-30"),
        ("2028-02-29", 12, "2029-02-28"),
        ("2028-02-29", 48, "2032-02-29"),
        ("2026-12-15", 1, "2027-01-15"),
        ("2026-11-30", 3, "2027-02-28"),
    ],
)
def test_a_month_ends_on_the_same_day_or_on_the_last_day_of_the_month(
    anchor: str, months: int, expected: str
) -> None:
    start = datetime.fromisoformat(f"{anchor}T13:30:00+00:00")
    assert clock.months_after(start, months).isoformat() == f"{expected}T13:30:00+00:00"


def test_an_empty_account_has_zeros() -> None:
    shown = BalanceResponse.of(balance()).model_dump(by_alias=True)
    assert shown == {
        "topUpCents": 0,
        "totalAvailable": 0,
        "totalLoadedCents": 0,
        "totalSpentCents": 0,
        "hasAllowance": False,
        "allowOverflow": True,
        "usageBar": {
            "used": 0,
            "total": 0,
            "remaining": 0,
            "percent": 0,
            "status": "normal",
            "resetsAt": None,
        },
        "balance": {
            "availableUsd": "0.00",
            "totalLoadedUsd": "0.00",
            "totalSpentUsd": "0.00",
            "availableCents": 0,
            "reservedCents": 0,
        },
    }


def test_fractions_of_cents_are_added_before_rounding() -> None:
    shown = BalanceResponse.of(
        balance(
            allowance=15_000,
            topup=25_000,
            held_allowance=1,
            held_topup=5_000,
            spent=10_001,
            outside=-40_001 * 10_000,
            owed=-1,
        )
    )
    assert shown.total_available == shown.balance.available_cents == 4
    assert shown.top_up_cents == 3
    assert shown.balance.reserved_cents == 1
    assert shown.total_spent_cents == 2
    assert shown.balance.total_loaded_usd == "400.01"
    assert shown.model_dump(by_alias=True)["owedCents"] == 1


@pytest.mark.parametrize(
    ("used", "cents", "percent", "status"),
    [
        (0, 0, 0, "normal"),
        (1, 1, 0, "normal"),
        (7_999_999, 800, 79, "normal"),
        (8_000_000, 800, 80, "warning"),
        (9_999_999, 1000, 99, "warning"),
        (10_000_000, 1000, 100, "depleted"),
    ],
)
def test_the_usage_bar_warns_from_80_percent_and_is_depleted_at_100(
    used: int, cents: int, percent: int, status: str
) -> None:
    bar = UsageBar.of(
        balance(
            allowance_total=10_000_000,
            allowance_used=used,
            period_anchor=RESET - timedelta(days=30),
            period_ends_at=RESET,
        )
    )
    assert (bar.used, bar.percent, bar.status) == (cents, percent, status)
    assert bar.total == 1_000 == bar.used + bar.remaining
    assert bar.model_dump(by_alias=True)["resetsAt"] == "2026-12-15T00:00:00.000Z"
