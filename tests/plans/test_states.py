"""Every move of a subscription: what was known, what the processor says, and the time."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from random import Random
from typing import Any
from uuid import UUID

import pytest

from rota.payments.port import Subscription
from rota.plans.states import (
    Outcome,
    Plan,
    State,
    next_state,
)
from rota.platform.clock import months_after

ACCOUNT = UUID(int=1)
GRACE = timedelta(days=7)
START = datetime(2026, 1, 15, 12, tzinfo=UTC)
END = months_after(START, 1)
NEXT = months_after(START, 2)
DURING = START + timedelta(days=3)
TIERS = ("basic", "standard", "advanced", "corporate", "enterprise")
STANDARD, ADVANCED = Plan("standard", 1), Plan("advanced", 1)
SECOND = timedelta(seconds=1)


def seen(plan: Plan = STANDARD, status: Any = "active", **more: Any) -> Subscription:
    fields: dict[str, Any] = {
        "id": "sub_1",
        "account_id": ACCOUNT,
        "customer_id": "cus_1",
        "product": plan.name,
        "seats": plan.seats,
        "status": status,
        "period_start": START,
        "period_end": END,
        "cancel_at_period_end": False,
        "replaces": None,
    }
    return Subscription(**fields | more)


def known(plan: Plan = STANDARD, status: Any = "ACTIVE", **more: Any) -> State:
    return State("sub_1", status, plan, **{"period_start": START, "period_end": END} | more)


def renewed(**more: Any) -> dict[str, Any]:
    return {"period_start": END, "period_end": NEXT, **more}


def go(current: State | None, said: Subscription | None, now: datetime = DURING) -> Outcome:
    return next_state(current, said, now, GRACE, TIERS.index)


ENDED = known(status="CANCELLED", entitled=False)
TRIALING = known(status="TRIALING", trial_end=END)
AFTER_TRIAL = known(**renewed(trial_end=END))
UNPAID = known(status="PAST_DUE", unpaid_since=END, **renewed())
CANCELLING = known(cancel_at_period_end=True)
LOWERED = known(ADVANCED, next_plan=STANDARD)


@dataclass(frozen=True)
class Transition:
    """What was known, what the processor says then, when, and what follows."""

    name: str
    current: State | None
    said: Subscription | None
    now: datetime
    then: State | None
    end: tuple[str, ...] = ()


def cancelled(state: State, **more: Any) -> State:
    return replace(state, status="CANCELLED", entitled=False, unpaid_since=None, **more)


ONE_DAY = timedelta(days=1)
UNPAID_SEEN = seen(status="past_due", **renewed())
TRANSITIONS = [
    # Nothing was known.
    Transition("a first payment is under way", None, seen(status="incomplete"), DURING, None),
    Transition("a first payment", None, seen(), DURING, known()),
    Transition("a trial begins", None, seen(status="trialing"), DURING, TRIALING),
    Transition("first heard of when it is past due", None, UNPAID_SEEN, END + ONE_DAY, UNPAID),
    Transition(
        "first heard of when long past due",
        None,
        UNPAID_SEEN,
        END + GRACE,
        replace(UNPAID, entitled=False),
    ),
    Transition("first heard of when it has ended", None, seen(status="ended"), DURING, ENDED),
    Transition("nothing known and nothing said", None, None, DURING, None),
    # A trial.
    Transition("the trial goes on", TRIALING, seen(status="trialing"), DURING, TRIALING),
    Transition(
        "the trial is over, and paid", TRIALING, seen(**renewed()), END + ONE_DAY, AFTER_TRIAL
    ),
    Transition(
        "the trial is over, and not paid",
        TRIALING,
        UNPAID_SEEN,
        END + ONE_DAY,
        cancelled(AFTER_TRIAL),
        end=("sub_1",),
    ),
    Transition(
        "first active after the trial, then not paid",
        AFTER_TRIAL,
        UNPAID_SEEN,
        END + ONE_DAY,
        cancelled(AFTER_TRIAL),
        end=("sub_1",),
    ),
    Transition(
        "told again that the trial was not paid",
        cancelled(AFTER_TRIAL),
        UNPAID_SEEN,
        NEXT,
        cancelled(AFTER_TRIAL),
    ),
    Transition(
        "a trial that is cancelled ends with it",
        TRIALING,
        seen(status="trialing", cancel_at_period_end=True),
        END,
        cancelled(TRIALING),
    ),
    Transition(
        "the trial ends at once", TRIALING, seen(status="ended"), DURING, cancelled(TRIALING)
    ),
    Transition("the trial is over without news", TRIALING, None, END + ONE_DAY, TRIALING),
    Transition(
        "the second period after a trial is not paid",
        AFTER_TRIAL,
        seen(status="past_due", period_start=NEXT, period_end=months_after(START, 3)),
        NEXT + ONE_DAY,
        replace(
            AFTER_TRIAL,
            status="PAST_DUE",
            period_start=NEXT,
            period_end=months_after(START, 3),
            unpaid_since=NEXT,
        ),
    ),
    # Paid.
    Transition("nothing new", known(), seen(), DURING, known()),
    Transition("renewed", known(), seen(**renewed()), END + ONE_DAY, known(**renewed())),
    Transition("over without news", known(), None, END + ONE_DAY, known()),
    Transition("over, and not renewed yet", known(), seen(), END + SECOND, known()),
    Transition("the renewal is not paid", known(), UNPAID_SEEN, END + ONE_DAY, UNPAID),
    Transition("ended by the processor", known(), seen(status="ended"), DURING, ENDED),
    Transition(
        "an old message of the first payment", known(), seen(status="incomplete"), DURING, known()
    ),
    # Cancelled.
    Transition("cancelled", known(), seen(cancel_at_period_end=True), DURING, CANCELLING),
    Transition("resumed", CANCELLING, seen(), DURING, known()),
    Transition("the last moment", CANCELLING, None, END - SECOND, CANCELLING),
    Transition("the period is over", CANCELLING, seen(status="ended"), END, ENDED),
    Transition("over by our clock first", CANCELLING, seen(cancel_at_period_end=True), END, ENDED),
    Transition("over without news, cancelled", CANCELLING, None, END, ENDED),
    Transition("resumed at the last moment", ENDED, seen(**renewed()), END, known(**renewed())),
    Transition("it has ended", ENDED, seen(status="ended"), NEXT, ENDED),
    Transition("it has ended, without news", ENDED, None, NEXT, ENDED),
    # Not paid.
    Transition("the last moment of grace", UNPAID, UNPAID_SEEN, END + GRACE - SECOND, UNPAID),
    Transition("grace is over", UNPAID, UNPAID_SEEN, END + GRACE, replace(UNPAID, entitled=False)),
    Transition(
        "grace is over without news", UNPAID, None, END + GRACE, replace(UNPAID, entitled=False)
    ),
    Transition(
        "paid in time",
        UNPAID,
        seen(**renewed()),
        END + ONE_DAY,
        known(**renewed()),
    ),
    Transition(
        "paid after all",
        replace(UNPAID, entitled=False),
        seen(**renewed()),
        END + GRACE + ONE_DAY,
        known(**renewed()),
    ),
    Transition("given up", UNPAID, seen(status="ended", **renewed()), NEXT, cancelled(UNPAID)),
    Transition(
        "another period begins, and the one before is not paid",
        UNPAID,
        seen(status="past_due", period_start=NEXT, period_end=NEXT + ONE_DAY),
        NEXT,
        replace(UNPAID, period_start=NEXT, period_end=NEXT + ONE_DAY, entitled=False),
    ),
    Transition(
        "not paid, cancelled and over",
        UNPAID,
        replace(UNPAID_SEEN, cancel_at_period_end=True),
        NEXT,
        cancelled(UNPAID),
    ),
    # Another plan, of the same subscription.
    Transition("a lower plan is chosen", known(ADVANCED), seen(STANDARD), DURING, LOWERED),
    Transition("told again", LOWERED, seen(STANDARD), DURING, LOWERED),
    Transition("the choice is taken back", LOWERED, seen(ADVANCED), DURING, known(ADVANCED)),
    Transition("over, and not renewed", LOWERED, seen(STANDARD), END + SECOND, LOWERED),
    Transition(
        "the lower plan begins",
        LOWERED,
        seen(STANDARD, **renewed()),
        END + SECOND,
        known(**renewed()),
    ),
    Transition(
        "the lower plan begins, and is not paid",
        LOWERED,
        UNPAID_SEEN,
        END + ONE_DAY,
        UNPAID,
    ),
    Transition(
        "a lower plan, and cancelled",
        LOWERED,
        seen(STANDARD, cancel_at_period_end=True),
        DURING,
        replace(LOWERED, cancel_at_period_end=True),
    ),
    Transition("the processor raises it", known(STANDARD), seen(ADVANCED), DURING, known(ADVANCED)),
    Transition(
        "fewer seats",
        known(Plan("corporate", 9)),
        seen(Plan("corporate", 4)),
        DURING,
        known(Plan("corporate", 9), next_plan=Plan("corporate", 4)),
    ),
    Transition(
        "more seats",
        known(Plan("corporate", 4)),
        seen(Plan("corporate", 9)),
        DURING,
        known(Plan("corporate", 9)),
    ),
    Transition(
        "a higher plan with fewer seats",
        known(Plan("corporate", 300)),
        seen(Plan("enterprise", 100)),
        DURING,
        known(Plan("enterprise", 100)),
    ),
    # Another subscription.
    Transition(
        "a higher plan takes the place",
        known(),
        seen(ADVANCED, id="sub_2", replaces="sub_1", period_start=DURING, period_end=NEXT),
        DURING,
        State("sub_2", "ACTIVE", ADVANCED, DURING, NEXT, replaced=("sub_1",)),
        end=("sub_1",),
    ),
    Transition(
        "a higher plan that is not paid yet changes nothing",
        known(),
        seen(ADVANCED, "incomplete", id="sub_2", replaces="sub_1"),
        DURING,
        known(),
    ),
    Transition(
        "the old one is told of later",
        known(ADVANCED, replaced=("sub_0",)),
        seen(id="sub_0"),
        DURING,
        known(ADVANCED, replaced=("sub_0",)),
    ),
    Transition(
        "the old one ends",
        known(ADVANCED, replaced=("sub_0",)),
        seen(id="sub_0", status="ended"),
        DURING,
        known(ADVANCED, replaced=("sub_0",)),
    ),
    Transition(
        "the higher plan is told of first",
        None,
        seen(ADVANCED, replaces="sub_0"),
        DURING,
        known(ADVANCED, replaced=("sub_0",)),
        end=("sub_0",),
    ),
    Transition(
        "somebody paid twice: the higher plan stays",
        known(ADVANCED),
        seen(STANDARD, id="sub_2"),
        DURING,
        known(ADVANCED, replaced=("sub_2",)),
        end=("sub_2",),
    ),
    Transition(
        "a new one after the end",
        ENDED,
        seen(ADVANCED, id="sub_2", **renewed()),
        END + ONE_DAY,
        State("sub_2", "ACTIVE", ADVANCED, END, NEXT, replaced=("sub_1",)),
    ),
    Transition(
        "a stranger that has ended",
        known(),
        seen(ADVANCED, "ended", id="sub_2"),
        DURING,
        known(),
    ),
]


@pytest.mark.parametrize("move", TRANSITIONS, ids=lambda move: move.name)
def test_every_move(move: Transition) -> None:
    assert go(move.current, move.said, move.now) == Outcome(move.then, move.end)


@pytest.mark.parametrize("move", TRANSITIONS, ids=lambda move: move.name)
def test_being_told_again_changes_nothing(move: Transition) -> None:
    again = go(move.then, move.said, move.now)
    assert again == Outcome(move.then, ())


def test_whoever_pays_for_several_keeps_the_highest_whatever_is_told_first() -> None:
    """A subscription, an upgrade of it, an upgrade of that, and one bought twice by mistake."""
    bought = [
        seen(STANDARD, id="sub_1"),
        seen(ADVANCED, id="sub_2", replaces="sub_1", period_start=DURING),
        seen(Plan("corporate", 5), id="sub_3", replaces="sub_2", period_start=DURING),
        seen(Plan("corporate", 5), id="sub_4", replaces="sub_2", period_start=DURING + SECOND),
    ]
    for told in permutations(bought):
        state: State | None = None
        end: set[str] = set()
        for said in told:
            outcome = go(state, said)
            state, end = outcome.state, end | set(outcome.end)
        assert state is not None
        assert (state.processor_id, state.plan, state.entitled) == (
            *("sub_4", Plan("corporate", 5)),
            True,
        )
        assert end == {"sub_1", "sub_2", "sub_3"} == set(state.replaced)


def test_messages_in_any_order_end_the_same() -> None:
    """Each message makes us ask; the processor answers what is true when it is asked."""
    chance = Random(1)
    history = [
        (DURING, seen(ADVANCED)),
        (DURING + ONE_DAY, seen(STANDARD)),
        (DURING + 2 * ONE_DAY, seen(STANDARD, cancel_at_period_end=True)),
        (DURING + 3 * ONE_DAY, seen(STANDARD)),
        (END + SECOND, UNPAID_SEEN),
        (END + ONE_DAY, seen(STANDARD, **renewed())),
    ]
    last = history[-1]
    for _ in range(200):
        state: State | None = None
        heard = [moment for moment in history if chance.random() < 0.5]
        for now, said in [*heard, *[last] * chance.randint(1, 5)]:
            state = go(state, said, now).state
        assert state == known(STANDARD, **renewed())
