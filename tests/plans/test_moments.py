"""Times: ends of months, leap days, grace periods and the next check."""

from datetime import datetime

import pytest

from rota.plans.states import RECHECK_AFTER, RECHECK_UNPAID, due_at
from rota.platform.clock import months_after
from tests.plans.subscriptions import (
    CANCELLING,
    DURING,
    END,
    ENDED,
    GRACE,
    NEXT,
    SECOND,
    TRIALING,
    UNPAID,
    advance,
    known,
    seen,
)


# Ends of months and leap days: the start of the unpaid period, and the end of the grace period.
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
def test_the_grace_period_starts_with_the_unpaid_period(
    start: str, months: int, unpaid: str, over: str
) -> None:
    anchor = datetime.fromisoformat(start)
    start_unpaid, ends = months_after(anchor, months), months_after(anchor, months + 1)
    assert start_unpaid == datetime.fromisoformat(unpaid)
    report = seen(status="past_due", period_start=start_unpaid, period_end=ends)
    moment = datetime.fromisoformat(over)
    before = advance(known(), report, moment - SECOND).state
    after = advance(before, report, moment).state
    assert before is not None
    assert after is not None
    assert (before.status, before.entitled) == ("PAST_DUE", True)
    assert (after.status, after.entitled) == ("PAST_DUE", False)
    assert due_at(before, moment - SECOND, GRACE) == moment


def test_the_time_of_the_next_check() -> None:
    for state, now, then in (
        (known(), DURING, END),
        (known(), END, END + RECHECK_AFTER),
        (TRIALING, DURING, END),
        (CANCELLING, DURING, END),
        (UNPAID, END, END + RECHECK_UNPAID),
        (UNPAID, END + GRACE - SECOND, END + GRACE),
        (UNPAID, END + GRACE, END + GRACE + RECHECK_UNPAID),
        (UNPAID, NEXT - SECOND, NEXT),
        (ENDED, DURING, None),
    ):
        assert due_at(state, now, GRACE) == then, (state, now)
