"""The states of a subscription, as pure functions of the last state, the processor and the time.

A message from the processor is only a hint that a subscription has changed. Its current state is
then read from the processor. Messages can therefore arrive in any order and any number of times.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from rota.payments.port import Subscription

Status = Literal["ACTIVE", "CANCELLED", "PAST_DUE", "TRIALING"]

# How soon the processor is asked again when a renewal is late, while its invoice is open, and while
# a period is unpaid.
RECHECK_AFTER = timedelta(minutes=10)
RECHECK_OPEN = timedelta(minutes=30)
RECHECK_UNPAID = timedelta(days=1)

_STATUSES: dict[str, Status] = {
    "trialing": "TRIALING",
    "active": "ACTIVE",
    "past_due": "PAST_DUE",
    "ended": "CANCELLED",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A tier or the add-on, and the number of seats."""

    name: str
    seats: int


# The position of a tier in the list from the lowest to the highest.
Position = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class State:
    processor_id: str
    status: Status
    plan: Plan
    period_start: datetime
    period_end: datetime
    cancel_at_period_end: bool = False
    # The lower plan that starts with the next period.
    next_plan: Plan | None = None
    # The start of the first unpaid period, also while it is ACTIVE and its invoice is open.
    unpaid_since: datetime | None = None
    trial_end: datetime | None = None
    # The processor's IDs of the subscriptions that it replaced.
    replaced: tuple[str, ...] = ()
    # Whether the account has the benefits of the plan now.
    entitled: bool = True

    @property
    def live(self) -> bool:
        return self.status != "CANCELLED"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The new state, if any, and the subscriptions that the processor has to end."""

    state: State | None
    end: tuple[str, ...] = ()


def order(plan: Plan, position: Position) -> tuple[int, int]:
    """Plans compare by tier, then by seats."""
    return position(plan.name), plan.seats


def next_state(
    current: State | None,
    reported: Subscription | None,
    now: datetime,
    grace: timedelta,
    position: Position,
) -> Outcome:
    """The state after the processor's report, or from the time alone without a report."""
    if reported is None:
        return Outcome(state_at(current, now, grace) if current else None)
    if current is not None and reported.id != current.processor_id:
        return _resolve_duplicate(current, reported, now, grace, position)
    if reported.status == "incomplete":
        # The first payment is not complete, and may never be.
        return Outcome(current)
    state = state_at(_from_processor(current, reported, position), now, grace)
    if current is None:
        return Outcome(state, state.replaced)
    if reported.status == "past_due" and _never_paid(state):
        # The first payment after the trial failed: the subscription ends without a grace period.
        return Outcome(ended(state), (reported.id,) if current.live else ())
    return Outcome(state)


def _from_processor(current: State | None, reported: Subscription, position: Position) -> State:
    """The same subscription in its current state at the processor."""
    plan, next_plan = Plan(reported.product, reported.seats), None
    same_period = current is not None and reported.period_start <= current.period_start
    if current and same_period and order(plan, position) < order(current.plan, position):
        # The processor has already changed it, but the paid plan lasts until the period ends.
        plan, next_plan = current.plan, plan
    status = _STATUSES[reported.status]
    unpaid_since = None
    if status == "PAST_DUE" or (status == "ACTIVE" and not reported.paid):
        unpaid_since = reported.period_start
        if current and current.unpaid_since:
            unpaid_since = min(unpaid_since, current.unpaid_since)
    trial_end = current.trial_end if current else None
    replaced: tuple[str, ...] = current.replaced if current else ()
    if current is None and reported.replaces and status != "CANCELLED":
        replaced = (reported.replaces,)
    return State(
        processor_id=reported.id,
        status=status,
        plan=plan,
        period_start=reported.period_start,
        period_end=reported.period_end,
        cancel_at_period_end=reported.cancel_at_period_end,
        next_plan=next_plan,
        unpaid_since=unpaid_since,
        trial_end=reported.period_end if status == "TRIALING" else trial_end,
        replaced=replaced,
    )


def _never_paid(state: State) -> bool:
    """Whether the unpaid period is the first one after the trial."""
    return state.trial_end is not None and state.period_start <= state.trial_end


def state_at(state: State, now: datetime, grace: timedelta) -> State:
    """The state at this moment. Cancellations and grace periods end without a report."""
    if state.status == "CANCELLED" or (state.cancel_at_period_end and state.period_end <= now):
        return ended(state)
    return replace(state, entitled=_is_entitled(state, now, grace))


def _is_entitled(state: State, now: datetime, grace: timedelta) -> bool:
    # An active one is not late: its payment is not due yet, or a bank takes days for it.
    late_since = state.unpaid_since if state.status == "PAST_DUE" else None
    return late_since is None or now < late_since + grace


def ended(state: State) -> State:
    return replace(
        state,
        status="CANCELLED",
        cancel_at_period_end=False,
        next_plan=None,
        unpaid_since=None,
        entitled=False,
    )


def _resolve_duplicate(
    current: State, reported: Subscription, now: datetime, grace: timedelta, position: Position
) -> Outcome:
    """Handles a second subscription to the same product: keeps one and ends the other."""
    has_ended = not current.live
    # It can have ended since it was stored.
    current = state_at(current, now, grace)
    new = next_state(None, reported, now, grace, position).state
    if reported.id in current.replaced or new is None or not new.live:
        return Outcome(current)
    if new.unpaid_since and current.live and not current.unpaid_since:
        # A bank processes the first payment, or it failed. The paid subscription stays.
        return Outcome(current)
    replaces = (
        not current.live
        or reported.replaces == current.processor_id
        or _is_better(new, current, position)
    )
    kept, other = (new, current) if replaces else (current, new)
    replaced = {*kept.replaced, *other.replaced, other.processor_id}
    # One that ended only by our clock may have been resumed at the processor.
    ended = {*current.replaced, current.processor_id} if has_ended else set(current.replaced)
    return Outcome(replace(kept, replaced=tuple(sorted(replaced))), tuple(sorted(replaced - ended)))


def _is_better(one: State, other: State, position: Position) -> bool:
    """Someone who paid twice keeps the higher plan, no matter which is reported first."""

    def value(state: State) -> tuple[bool, tuple[int, int], datetime, str]:
        paid = state.unpaid_since is None
        return paid, order(state.plan, position), state.period_start, state.processor_id

    return value(one) > value(other)


def due_at(state: State, now: datetime, grace: timedelta) -> datetime | None:
    """When to check again without a report. None if nothing more can happen."""
    if not state.live:
        return None
    if state.unpaid_since is None:
        return state.period_end if state.period_end > now else now + RECHECK_AFTER
    if state.status != "PAST_DUE":
        return min(now + RECHECK_OPEN, max(state.period_end, now + RECHECK_AFTER))
    candidates = (state.unpaid_since + grace, state.period_end, now + RECHECK_UNPAID)
    return min(moment for moment in candidates if moment > now)
