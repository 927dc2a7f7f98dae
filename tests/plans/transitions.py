"""Transitions of a subscription: its state, the processor's report, the time, and the outcome."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from rota.payments.port import Subscription
from rota.plans.states import Plan, State
from rota.platform.clock import months_after
from tests.plans.subscriptions import (
    ADVANCED,
    AFTER_TRIAL,
    CANCELLING,
    DURING,
    END,
    ENDED,
    GRACE,
    LOWERED,
    NEXT,
    SECOND,
    STANDARD,
    START,
    TRIALING,
    UNPAID,
    known,
    renewed,
    seen,
)


@dataclass(frozen=True)
class Transition:
    """The current state, the processor's report, the time, and the expected outcome."""

    name: str
    current: State | None
    report: Subscription | None
    now: datetime
    then: State | None
    end: tuple[str, ...] = ()


def cancelled(state: State, **more: Any) -> State:
    return replace(state, status="CANCELLED", entitled=False, unpaid_since=None, **more)


def second(**more: Any) -> Subscription:
    return seen(ADVANCED, id="sub_2", replaces="sub_1", **more)


ONE_DAY = timedelta(days=1)
UNPAID_SEEN = seen(status="past_due", **renewed())
OPEN_SEEN, OPEN = seen(paid=False, **renewed()), known(unpaid_since=END, **renewed())
TRANSITIONS = [
    # No current state.
    Transition("first payment not complete", None, seen(status="incomplete"), DURING, None),
    Transition("first payment", None, seen(), DURING, known()),
    Transition("trial starts", None, seen(status="trialing"), DURING, TRIALING),
    Transition("first seen past due", None, UNPAID_SEEN, END + ONE_DAY, UNPAID),
    Transition(
        "first seen after the grace period",
        None,
        UNPAID_SEEN,
        END + GRACE,
        replace(UNPAID, entitled=False),
    ),
    Transition("first seen after it ended", None, seen(status="ended"), DURING, ENDED),
    Transition("no state and no report", None, None, DURING, None),
    # A trial.
    Transition("trial continues", TRIALING, seen(status="trialing"), DURING, TRIALING),
    Transition("trial ends, paid", TRIALING, seen(**renewed()), END + ONE_DAY, AFTER_TRIAL),
    Transition(
        "trial ends, not paid",
        TRIALING,
        UNPAID_SEEN,
        END + ONE_DAY,
        cancelled(AFTER_TRIAL),
        end=("sub_1",),
    ),
    Transition(
        "active after the trial, then not paid",
        AFTER_TRIAL,
        UNPAID_SEEN,
        END + ONE_DAY,
        cancelled(AFTER_TRIAL),
        end=("sub_1",),
    ),
    Transition(
        "unpaid trial reported again",
        cancelled(AFTER_TRIAL),
        UNPAID_SEEN,
        NEXT,
        cancelled(AFTER_TRIAL),
    ),
    Transition(
        "cancelled trial ends",
        TRIALING,
        seen(status="trialing", cancel_at_period_end=True),
        END,
        cancelled(TRIALING),
    ),
    Transition(
        "trial ends immediately", TRIALING, seen(status="ended"), DURING, cancelled(TRIALING)
    ),
    Transition("trial ends without a report", TRIALING, None, END + ONE_DAY, TRIALING),
    Transition(
        "second period after a trial not paid",
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
    Transition("nothing changed", known(), seen(), DURING, known()),
    Transition("renewed", known(), seen(**renewed()), END + ONE_DAY, known(**renewed())),
    # The invoice of a renewal is open for an hour, or while a bank takes days for it.
    Transition("renewed, not paid yet", known(), OPEN_SEEN, END + ONE_DAY, OPEN),
    Transition("not paid for longer than the grace period", OPEN, OPEN_SEEN, END + GRACE, OPEN),
    Transition("paid late", OPEN, seen(**renewed()), END + ONE_DAY, known(**renewed())),
    Transition("payment failed", OPEN, UNPAID_SEEN, END + ONE_DAY, UNPAID),
    # A second subscription replaces a paid one only when it is paid itself.
    Transition("replacement not paid yet", known(), second(paid=False), DURING, known()),
    Transition("replacement failed", known(), second(status="past_due"), DURING, known()),
    Transition(
        "replacement paid",
        known(),
        second(),
        DURING,
        replace(known(ADVANCED, replaced=("sub_1",)), processor_id="sub_2"),
        end=("sub_1",),
    ),
    Transition(
        "replacement not paid yet, and the first one is unpaid",
        UNPAID,
        second(paid=False, **renewed()),
        END + ONE_DAY,
        replace(
            known(ADVANCED, replaced=("sub_1",), unpaid_since=END, **renewed()),
            processor_id="sub_2",
        ),
        end=("sub_1",),
    ),
    Transition("period ends without a report", known(), None, END + ONE_DAY, known()),
    Transition("period ends, not renewed yet", known(), seen(), END + SECOND, known()),
    Transition("renewal not paid", known(), UNPAID_SEEN, END + ONE_DAY, UNPAID),
    Transition("ended by the processor", known(), seen(status="ended"), DURING, ENDED),
    Transition(
        "old report of the first payment", known(), seen(status="incomplete"), DURING, known()
    ),
    # Cancelled.
    Transition("cancelled", known(), seen(cancel_at_period_end=True), DURING, CANCELLING),
    Transition("resumed", CANCELLING, seen(), DURING, known()),
    Transition("last second of a cancelled period", CANCELLING, None, END - SECOND, CANCELLING),
    Transition("cancelled period ends", CANCELLING, seen(status="ended"), END, ENDED),
    Transition(
        "cancelled period ends by our clock first",
        CANCELLING,
        seen(cancel_at_period_end=True),
        END,
        ENDED,
    ),
    Transition("cancelled period ends without a report", CANCELLING, None, END, ENDED),
    Transition("resumed in the last second", ENDED, seen(**renewed()), END, known(**renewed())),
    Transition("still ended", ENDED, seen(status="ended"), NEXT, ENDED),
    Transition("still ended, without a report", ENDED, None, NEXT, ENDED),
    # Not paid.
    Transition(
        "last second of the grace period", UNPAID, UNPAID_SEEN, END + GRACE - SECOND, UNPAID
    ),
    Transition(
        "grace period ends", UNPAID, UNPAID_SEEN, END + GRACE, replace(UNPAID, entitled=False)
    ),
    Transition(
        "grace period ends without a report",
        UNPAID,
        None,
        END + GRACE,
        replace(UNPAID, entitled=False),
    ),
    Transition(
        "paid in time",
        UNPAID,
        seen(**renewed()),
        END + ONE_DAY,
        known(**renewed()),
    ),
    Transition(
        "paid after the grace period",
        replace(UNPAID, entitled=False),
        seen(**renewed()),
        END + GRACE + ONE_DAY,
        known(**renewed()),
    ),
    Transition(
        "ended by the processor after failed payments",
        UNPAID,
        seen(status="ended", **renewed()),
        NEXT,
        cancelled(UNPAID),
    ),
    Transition(
        "next period starts while unpaid",
        UNPAID,
        seen(status="past_due", period_start=NEXT, period_end=NEXT + ONE_DAY),
        NEXT,
        replace(UNPAID, period_start=NEXT, period_end=NEXT + ONE_DAY, entitled=False),
    ),
    Transition(
        "unpaid, cancelled and ended",
        UNPAID,
        replace(UNPAID_SEEN, cancel_at_period_end=True),
        NEXT,
        cancelled(UNPAID),
    ),
    # A plan change within the subscription.
    Transition("downgrade scheduled", known(ADVANCED), seen(STANDARD), DURING, LOWERED),
    Transition("downgrade reported again", LOWERED, seen(STANDARD), DURING, LOWERED),
    Transition("downgrade removed", LOWERED, seen(ADVANCED), DURING, known(ADVANCED)),
    Transition(
        "downgrade scheduled, period ends, not renewed yet",
        LOWERED,
        seen(STANDARD),
        END + SECOND,
        LOWERED,
    ),
    Transition(
        "lower plan starts",
        LOWERED,
        seen(STANDARD, **renewed()),
        END + SECOND,
        known(**renewed()),
    ),
    Transition(
        "lower plan starts, not paid",
        LOWERED,
        UNPAID_SEEN,
        END + ONE_DAY,
        UNPAID,
    ),
    Transition(
        "downgrade scheduled, then cancelled",
        LOWERED,
        seen(STANDARD, cancel_at_period_end=True),
        DURING,
        replace(LOWERED, cancel_at_period_end=True),
    ),
    Transition(
        "upgrade at the processor", known(STANDARD), seen(ADVANCED), DURING, known(ADVANCED)
    ),
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
        "higher plan with fewer seats",
        known(Plan("corporate", 300)),
        seen(Plan("enterprise", 100)),
        DURING,
        known(Plan("enterprise", 100)),
    ),
    # A second subscription.
    Transition(
        "higher plan replaces the lower",
        known(),
        seen(ADVANCED, id="sub_2", replaces="sub_1", period_start=DURING, period_end=NEXT),
        DURING,
        State("sub_2", "ACTIVE", ADVANCED, DURING, NEXT, replaced=("sub_1",)),
        end=("sub_1",),
    ),
    Transition(
        "higher plan not paid yet",
        known(),
        seen(ADVANCED, "incomplete", id="sub_2", replaces="sub_1"),
        DURING,
        known(),
    ),
    Transition(
        "replaced subscription reported later",
        known(ADVANCED, replaced=("sub_0",)),
        seen(id="sub_0"),
        DURING,
        known(ADVANCED, replaced=("sub_0",)),
    ),
    Transition(
        "replaced subscription ends",
        known(ADVANCED, replaced=("sub_0",)),
        seen(id="sub_0", status="ended"),
        DURING,
        known(ADVANCED, replaced=("sub_0",)),
    ),
    Transition(
        "higher plan reported first",
        None,
        seen(ADVANCED, replaces="sub_0"),
        DURING,
        known(ADVANCED, replaced=("sub_0",)),
        end=("sub_0",),
    ),
    Transition(
        "paid twice, higher plan stays",
        known(ADVANCED),
        seen(STANDARD, id="sub_2"),
        DURING,
        known(ADVANCED, replaced=("sub_2",)),
        end=("sub_2",),
    ),
    Transition(
        "new subscription after the end",
        ENDED,
        seen(ADVANCED, id="sub_2", **renewed()),
        END + ONE_DAY,
        State("sub_2", "ACTIVE", ADVANCED, END, NEXT, replaced=("sub_1",)),
    ),
    Transition(
        "lower plan bought after the end, before the sweep",
        replace(CANCELLING, plan=ADVANCED),
        seen(STANDARD, id="sub_2", **renewed()),
        END + ONE_DAY,
        State("sub_2", "ACTIVE", STANDARD, END, NEXT, replaced=("sub_1",)),
        end=("sub_1",),
    ),
    Transition(
        "lower plan bought before the end",
        replace(CANCELLING, plan=ADVANCED),
        seen(STANDARD, id="sub_2"),
        END - SECOND,
        known(ADVANCED, cancel_at_period_end=True, replaced=("sub_2",)),
        end=("sub_2",),
    ),
    Transition(
        "unknown subscription, and the known one has ended",
        CANCELLING,
        seen(ADVANCED, "ended", id="sub_2"),
        END,
        ENDED,
    ),
    Transition(
        "unknown subscription that has ended",
        known(),
        seen(ADVANCED, "ended", id="sub_2"),
        DURING,
        known(),
    ),
]
