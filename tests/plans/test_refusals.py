"""Refused plans and purchases: each has its own error, whose message says what to do."""

from typing import Any

import pytest

from rota.accounts.model import Kind
from rota.plans.errors import (
    AlreadyCancelled,
    AlreadySubscribed,
    CancellationPending,
    NothingToResume,
    PassAlreadyBought,
)
from rota.plans.states import Plan
from rota.plans.tiers import (
    PlanFree,
    PlanNeedsCompany,
    PlanUnknown,
    PlanWithoutSeats,
    SeatsTooFew,
    Tiers,
)
from rota.platform.errors import ApiError
from rota.variants.a import VARIANT_A
from tests.plans.subscriptions import CANCELLING, LOWERED, known

TIERS = Tiers(VARIANT_A.tiers)


@pytest.mark.parametrize(
    ("name", "seats", "kind", "error", "message"),
    [
        (
            "golden",
            None,
            "personal",
            PlanUnknown,
            'Unknown plan "golden". The plans are standard, advanced, corporate, enterprise.',
        ),
        ("basic", None, "personal", PlanFree, "The plan basic is free."),
        ("standard", 3, "personal", PlanWithoutSeats, "The plan standard has no seats."),
        (
            "enterprise",
            99,
            "company",
            SeatsTooFew,
            "The plan enterprise needs at least 100 seats, not 99.",
        ),
        ("corporate", None, "personal", PlanNeedsCompany, "The plan corporate is for companies."),
    ],
)
def test_a_plan_that_cannot_be_chosen_says_why(
    name: str, seats: int | None, kind: Kind, error: type[ApiError], message: str
) -> None:
    with pytest.raises(error) as refused:
        TIERS.choose(name, seats, kind, None)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("field", "name", "seats"), [("plan", "x", None), ("seats", "standard", 2)]
)
def test_an_invalid_plan_names_the_field(field: str, name: str, seats: int | None) -> None:
    with pytest.raises(ApiError) as refused:
        TIERS.choose(name, seats, "personal", None)
    details: Any = refused.value.details
    assert [each["field"] for each in details] == [field]


def test_without_seats_the_number_of_seats_stays_the_same() -> None:
    assert TIERS.choose("corporate", None, "company", Plan("corporate", 7)).seats == 7
    assert TIERS.choose("enterprise", None, "company", Plan("corporate", 7)).seats == 100


def test_a_refused_change_says_what_to_do_first() -> None:
    assert str(CancellationPending(CANCELLING)) == (
        "The subscription ends on 2026-02-15. Resume it before you change the plan."
    )
    assert str(AlreadyCancelled("plan", CANCELLING)) == (
        "The subscription is already cancelled and ends on 2026-02-15."
    )
    assert str(AlreadySubscribed(known())) == "The account already has the plan standard."
    assert str(AlreadySubscribed(LOWERED)) == (
        "The plan standard already starts with the next period."
    )
    assert str(NothingToResume("connect_pass")) == (
        "The connect pass is not cancelled, so there is nothing to resume."
    )


def test_a_cancelled_pass_is_resumed_instead_of_bought_again() -> None:
    assert str(PassAlreadyBought(known())) == "The account already has the connect pass."
    assert str(PassAlreadyBought(CANCELLING)).endswith("Resume it instead.")
