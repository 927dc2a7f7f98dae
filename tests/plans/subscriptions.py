"""Subscriptions as the processor reports them and as Rota knows them, for tests of states."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from rota.payments.port import Subscription
from rota.plans.states import Outcome, Plan, State, next_state
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


def advance(current: State | None, report: Subscription | None, now: datetime = DURING) -> Outcome:
    return next_state(current, report, now, GRACE, TIERS.index)


ENDED = known(status="CANCELLED", entitled=False)
TRIALING = known(status="TRIALING", trial_end=END)
AFTER_TRIAL = known(**renewed(trial_end=END))
UNPAID = known(status="PAST_DUE", unpaid_since=END, **renewed())
CANCELLING = known(cancel_at_period_end=True)
LOWERED = known(ADVANCED, next_plan=STANDARD)
