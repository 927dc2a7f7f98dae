"""When things happen: ends of months, leap days, grace, and when to look again."""

from datetime import datetime

import pytest

from rota.plans.states import ASK_AGAIN, ASK_UNPAID, due_at
from rota.platform.clock import months_after
from tests.plans.test_states import (
    CANCELLING,
    DURING,
    END,
    ENDED,
    GRACE,
    NEXT,
    SECOND,
    TRIALING,
    UNPAID,
    go,
    known,
    seen,
)


# Ends of months and leap days: a period of the processor's, and when grace is over.
@pytest.mark.parametrize(
    ("start", "months", "unpaid", "over"),
    [
        ("2027-01-31T10:00:00+00:00", 1, "2027-02-28T10:00:00+00:00", "2027-03-07T10:00:00+00:00"),
        ("2028-01-31T10:00:00+00:00", 1, "2028-02-29T10:00:00+00:00", "2028-03-07T10:00:00+00:00"),
        ("2028-01-31T10:00:00+00:00", 2, "2028-03-31T10:00:00+00:00", "2028-04-07T10:00:00+00:00"),
        ("2028-02-29T10:00:00+00:00", 12, "2029-02-28T10:00:00+00:00", "2029-03-07T10:00:00+00:00"),
        ("2026-12-31T23:59:59+00:00", 2, "2027-02-28T23:59:59+00:00", "2027-03-07T23:59:59+00:00"),
    ],
)
def test_grace_is_counted_from_the_period_that_was_not_paid(
    start: str, months: int, unpaid: str, over: str
) -> None:
    anchor = datetime.fromisoformat(start)
    begins, ends = months_after(anchor, months), months_after(anchor, months + 1)
    assert begins == datetime.fromisoformat(unpaid)
    said = seen(status="past_due", period_start=begins, period_end=ends)
    moment = datetime.fromisoformat(over)
    before = go(known(), said, moment - SECOND).state
    after = go(before, said, moment).state
    assert before is not None
    assert after is not None
    assert (before.status, before.entitled) == ("PAST_DUE", True)
    assert (after.status, after.entitled) == ("PAST_DUE", False)
    assert due_at(before, moment - SECOND, GRACE) == moment


def test_when_to_look_again() -> None:
    for state, now, then in (
        (known(), DURING, END),
        (known(), END, END + ASK_AGAIN),
        (TRIALING, DURING, END),
        (CANCELLING, DURING, END),
        (UNPAID, END, END + ASK_UNPAID),
        (UNPAID, END + GRACE - SECOND, END + GRACE),
        (UNPAID, END + GRACE, END + GRACE + ASK_UNPAID),
        (UNPAID, NEXT - SECOND, NEXT),
        (ENDED, DURING, None),
    ):
        assert due_at(state, now, GRACE) == then, (state, now)
