"""Every transition of a subscription, by its state, the processor's report and the time."""

from itertools import permutations
from random import Random

import pytest

from rota.plans.states import Outcome, Plan, State
from tests.plans.subscriptions import (
    ADVANCED,
    DURING,
    END,
    SECOND,
    STANDARD,
    advance,
    known,
    renewed,
    seen,
)
from tests.plans.transitions import ONE_DAY, TRANSITIONS, UNPAID_SEEN, Transition


@pytest.mark.parametrize("case", TRANSITIONS, ids=lambda case: case.name)
def test_every_transition(case: Transition) -> None:
    assert advance(case.current, case.report, case.now) == Outcome(case.then, case.end)


@pytest.mark.parametrize("case", TRANSITIONS, ids=lambda case: case.name)
def test_a_repeated_report_changes_nothing(case: Transition) -> None:
    again = advance(case.then, case.report, case.now)
    assert again == Outcome(case.then, ())


def test_a_customer_with_several_subscriptions_keeps_the_highest_in_any_order() -> None:
    """A subscription, an upgrade, a second upgrade, and the second one bought twice."""
    bought = [
        seen(STANDARD, id="sub_1"),
        seen(ADVANCED, id="sub_2", replaces="sub_1", period_start=DURING),
        seen(Plan("corporate", 5), id="sub_3", replaces="sub_2", period_start=DURING),
        seen(Plan("corporate", 5), id="sub_4", replaces="sub_2", period_start=DURING + SECOND),
    ]
    for reports in permutations(bought):
        state: State | None = None
        end: set[str] = set()
        for report in reports:
            outcome = advance(state, report)
            state, end = outcome.state, end | set(outcome.end)
        assert state is not None
        assert (state.processor_id, state.plan) == ("sub_4", Plan("corporate", 5))
        assert state.entitled
        assert end == {"sub_1", "sub_2", "sub_3"} == set(state.replaced)


def test_any_subset_of_reports_leads_to_the_same_state() -> None:
    """Each webhook reads the current state, so only the last read counts."""
    random = Random(1)
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
        earlier = [entry for entry in history if random.random() < 0.5]
        for now, report in [*earlier, *[last] * random.randint(1, 5)]:
            state = advance(state, report, now).state
        assert state == known(STANDARD, **renewed())
